internal import ArgumentParser
internal import Dispatch
internal import Fields
internal import ImagePipeline
internal import LibC
internal import Synchronization
internal import WorkerService
internal import WorkerTelemetry

/// The program: a command, or a process in which a worker's images are worked on.
@main
enum Program {
  /// Runs the command on other threads, because helpers are forked from a process that has none.
  static func main() {
    openStandardDescriptors()
    #if os(Linux)
      // Where Swift finds the arguments.
      guard access("/proc/self/cmdline", R_OK) == 0 else {
        FileSystem.printError("Error: /proc is not mounted; mount it, as the program reads its arguments there")
        end(ExitStatus.failure.rawValue)
      }
    #endif
    let arguments = CommandLine.arguments.dropFirst()
    Allocator.limitRetention(coreCount: SystemInfo.coreCount)
    if arguments.first == CodecHelper.command {
      CodecHelper.run(arguments: Array(arguments.dropFirst()), trim: Allocator.trim)
    }
    if let problem = SystemLimits.threadProblem {
      FileSystem.printError("Error: \(problem)")
      end(ExitStatus.failure.rawValue)
    }
    Task {
      await ImageWorker.main()
      exit(0)
    }
    dispatchMain()
  }

  private static let outputWasClosed = Atomic(false)
  /// Whether standard output was closed, so that what is written to it is lost.
  static var isOutputLost: Bool { outputWasClosed.load(ordering: .relaxed) }

  /// Opens those of standard input, output and error that are closed, as other files would take their places.
  private static func openStandardDescriptors() {
    outputWasClosed.store(fcntl(STDOUT_FILENO, F_GETFD) < 0, ordering: .relaxed)
    for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 { _ = open("/dev/null", O_RDWR) }
  }

  /// Ends the process; ArgumentParser's method of the same name hides that of the system in commands.
  static func end(_ status: Int32) -> Never { exit(status) }
}

struct ImageWorker: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "image-worker",
    abstract: "Resize, convert and compress images, over gRPC or from files.",
    discussion: """
      Images are decoded while their bytes arrive, processed in strips of rows, and sent while later rows still \
      arrive. Memory stays small whatever the size of the image.

      Examples:
        image-worker process photo.jpg --max-width 800 --out small.jpg
        image-worker batch photos/ --preset upload --out small/
        image-worker playground
        image-worker serve

      --version --verbose also prints the versions of the libraries that decode, encode and isolate.
      """,
    version: WorkerVersion.current,
    subcommands: [
      Serve.self, PlaygroundCommand.self, Process.self, Batch.self, Inspect.self, Presets.self, Filters.self,
      Token.self,
    ])

  /// Runs the command.
  static func main() async {
    if Set(PathText.arguments) == ["--version", "--verbose"] {
      return printOrEnd(versions)
    }
    let arguments = arguments(PathText.arguments)
    if let command = arguments.first, let problem = problem(ofCommand: command) {
      end(ValidationError(problem))
    }
    // Their letters may ask for the help, which is no error of the parser.
    if let problem = problem(ofFiles: arguments) { end(ValidationError(problem)) }
    await execute(arguments)
  }

  private static func execute(_ arguments: [String]) async {
    do {
      var command: any ParsableCommand
      do { command = try parseAsRoot(arguments) } catch {
        if exitCode(for: error) == ExitStatus.usage.code { explainUnknownOption(arguments) }
        throw error
      }
      do {
        if var command = command as? any AsyncParsableCommand {
          try await command.run()
        } else {
          try command.run()
        }
      } catch let error as ValidationError {
        // What is wrong with a file that an option names is no matter of usage.
        FileSystem.printError("Error: \(error.message)")
        throw ExitStatus.usage.code
      } catch let error as PipelineError where error.isOfRequest {
        FileSystem.printError("Error: \(error)")
        throw ExitStatus.usage.code
      }
    } catch { end(error) }
  }

  /// Ends the program with the first option that its command does not have, if there is one.
  ///
  /// The parser reports what is missing first, although an option may be missing because its name is misspelled.
  private static func explainUnknownOption(_ arguments: [String]) {
    guard let command = configuration.subcommands.first(where: { $0._commandName == arguments.first }),
      let problem = problem(ofOptions: arguments.dropFirst(), of: command)
    else { return }
    let name = "image-worker \(command._commandName)"
    FileSystem.printError(
      "Error: \(problem)\nUsage: \(usageString(for: command))\n  See '\(name) --help' for more information.")
    Program.end(ExitStatus.usage.rawValue)
  }

  /// The error of the first option that a command does not have; `nil` if it has all.
  static func problem(ofOptions arguments: some Sequence<String>, of command: any ParsableCommand.Type) -> String? {
    let lines = helpMessage(for: command, columns: 1000).split(separator: "\n").filter { $0.hasPrefix("  -") }
    let names = lines.flatMap { line in
      line.split { " ,/".contains($0) }.prefix { $0.hasPrefix("-") || $0.hasPrefix("<") }.map(String.init)
    }
    // What has a space is a value.
    let given = arguments.prefix { $0 != "--" }.filter { $0.hasPrefix("--") && !$0.contains(" ") }
      .map { String($0.prefix { $0 != "=" }) }
    guard let unknown = given.first(where: { !names.contains($0) }) else { return nil }
    return "there is no option \(unknown)" + NearestName.question(unknown, in: names.filter { $0.hasPrefix("--") })
  }

  /// The error of a file whose name begins with a dash, which is read as options of one letter; `nil` if there is none.
  static func problem(ofFiles arguments: [String]) -> String? {
    let ours = arguments.prefix { $0 != "--" }
    let isHelp = ours.contains { ["-h", "-help", "--help"].contains($0) }
    let dashed = ours.indices.first { index in
      let letters = ours[index].dropFirst()
      // What follows an option may be its value.
      let isValue = index > 0 && ours[index - 1].hasPrefix("--") && !ours[index - 1].contains("=")
      return ours[index].hasPrefix("-") && letters.count > 1 && letters.first?.isLetter ?? false && !isValue
    }
    guard let dashed, !isHelp else { return nil }
    return "there is no option \(ours[dashed]); for a file with this name, write ./\(ours[dashed])"
  }

  /// Prints an error, or the help that was asked for, and ends the program.
  ///
  /// Errors contain names of files, and texts of workers.
  private static func end(_ error: any Error) -> Never {
    let code = exitCode(for: error)
    let text = fullMessage(for: error)
    if code.isSuccess {
      printOrEnd(text)
    } else if !text.isEmpty {
      FileSystem.printError(text)
    }
    Program.end(code.rawValue)
  }

  private static func printOrEnd(_ text: String) {
    do throws(FileError) { try FileSystem.printLine(text) } catch { end(error) }
  }

  /// The error of a first argument that is neither an option nor a command; `nil` for one of these.
  static func problem(ofCommand name: String) -> String? {
    let names = configuration.subcommands.map { $0._commandName }
    if name.hasPrefix("-") || names.contains(name) || name == "help" { return nil }
    return "there is no command \"\(name)\"" + NearestName.question(name, in: names)
  }

  /// The arguments with `--name=` as an option and an empty value, which ArgumentParser takes for a missing one, and with
  /// options and values apart where a combining mark follows the sign, which it does not find then.
  static func arguments(_ given: [String]) -> [String] {
    let end = given.firstIndex(of: "--") ?? given.endIndex
    return given[..<end].flatMap { argument in
      guard argument.hasPrefix("--"), let sign = argument.unicodeScalars.firstIndex(of: "=") else { return [argument] }
      let value = String(argument.unicodeScalars[sign...].dropFirst())
      return value.isEmpty || sign != argument.firstIndex(of: "=") ? [String(argument[..<sign]), value] : [argument]
    } + given[end...]
  }

  /// The versions of the worker and of its libraries, one a line.
  private static var versions: String {
    (["image-worker \(WorkerVersion.current)"] + WorkerVersion.libraries.map { "\($0.name) \($0.version)" })
      .joined(separator: "\n")
  }
}
