internal import ArgumentParser
internal import ImageCodecs
internal import WorkerTelemetry

@main
struct ImageWorker: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "image-worker",
    abstract: "Resize, convert and compress images, over gRPC or from files.",
    discussion: """
      Images are decoded while their bytes arrive, processed in strips of rows, and sent while later rows still \
      arrive. Memory stays small whatever the size of the image.

      --version --verbose also prints the versions of the libraries that decode and encode.
      """,
    version: WorkerVersion.current,
    subcommands: [
      Serve.self, PlaygroundCommand.self, Process.self, Batch.self, Inspect.self, Filters.self, Token.self,
    ])

  /// Runs the command, with the allocator's limits set before other threads allocate.
  static func main() async {
    Allocator.limitRetention(coreCount: SystemInfo.coreCount)
    if Set(CommandLine.arguments.dropFirst()) == ["--version", "--verbose"] {
      print(versions)
      return
    }
    await main(nil)
  }

  /// The versions of the worker and of its codec libraries, one a line.
  private static var versions: String {
    (["image-worker \(WorkerVersion.current)"] + CodecLibrary.all.map { "\($0.name) \($0.version)" })
      .joined(separator: "\n")
  }
}
