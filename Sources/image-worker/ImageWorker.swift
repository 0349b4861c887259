internal import ArgumentParser
internal import Dispatch
internal import Fields
internal import WorkerService
internal import WorkerTelemetry

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// The program: a command, or a process in which a worker's images are worked on.
@main
enum Program {
  /// Runs the command on other threads, because helpers are forked from a process that has none.
  static func main() {
    let arguments = CommandLine.arguments.dropFirst()
    Allocator.limitRetention(coreCount: SystemInfo.coreCount)
    if arguments.first == CodecHelper.command {
      CodecHelper.run(arguments: Array(arguments.dropFirst()), trim: Allocator.trim)
    }
    Task {
      await ImageWorker.main()
      exit(0)
    }
    dispatchMain()
  }
}

struct ImageWorker: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "image-worker",
    abstract: "Resize, convert and compress images, over gRPC or from files.",
    discussion: """
      Images are decoded while their bytes arrive, processed in strips of rows, and sent while later rows still \
      arrive. Memory stays small whatever the size of the image.

      --version --verbose also prints the versions of the libraries that decode, encode and isolate.
      """,
    version: WorkerVersion.current,
    subcommands: [
      Serve.self, PlaygroundCommand.self, Process.self, Batch.self, Inspect.self, Filters.self, Token.self,
    ])

  /// Runs the command.
  static func main() async {
    if Set(CommandLine.arguments.dropFirst()) == ["--version", "--verbose"] {
      print(versions)
      return
    }
    let arguments = arguments(Array(CommandLine.arguments.dropFirst()))
    if let command = arguments.first, let problem = problem(ofCommand: command) {
      exit(withError: ValidationError(problem))
    }
    await execute(arguments)
  }

  private static func execute(_ arguments: [String]) async {
    do {
      var command = try parseAsRoot(arguments)
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
      }
    } catch { exit(withError: error) }
  }

  /// The error of a first argument that is neither an option nor a command; `nil` for one of these.
  static func problem(ofCommand name: String) -> String? {
    let names = configuration.subcommands.map { $0._commandName }
    if name.hasPrefix("-") || names.contains(name) || name == "help" { return nil }
    return "there is no command \"\(name)\"" + NearestName.question(name, in: names)
  }

  /// The arguments with `--name=` as an option and an empty value, which ArgumentParser takes for a missing one.
  static func arguments(_ given: [String]) -> [String] {
    let end = given.firstIndex(of: "--") ?? given.endIndex
    return given[..<end].flatMap { argument in
      let isEmpty = argument.hasPrefix("--") && argument.firstIndex(of: "=") == argument.indices.last
      return isEmpty ? [String(argument.dropLast()), ""] : [argument]
    } + given[end...]
  }

  /// The versions of the worker and of its libraries, one a line.
  private static var versions: String {
    (["image-worker \(WorkerVersion.current)"] + LinkedLibrary.all.map { "\($0.name) \($0.version)" })
      .joined(separator: "\n")
  }
}
