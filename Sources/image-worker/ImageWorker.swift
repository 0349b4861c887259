internal import ArgumentParser
internal import WorkerTelemetry

@main
struct ImageWorker: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "image-worker",
    abstract: "Resize, convert and compress images, over gRPC or from files.",
    discussion: """
      Images are decoded while their bytes arrive, processed in strips of rows, and sent while later rows still \
      arrive. Memory stays small whatever the size of the image.
      """,
    version: WorkerVersion.current,
    subcommands: [Serve.self, Process.self, Batch.self, Inspect.self, Filters.self])

  /// Runs the command, with the allocator's limits set before other threads allocate.
  static func main() async {
    Allocator.limitRetention(coreCount: SystemInfo.coreCount)
    await main(nil)
  }
}
