internal import ArgumentParser

@main
struct ImageWorker: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "image-worker",
    abstract: "Shrinks and converts pictures strip by strip, over gRPC or here.",
    discussion: """
      Pictures are decoded while their bytes arrive, pass through the stages in strips of rows, and leave while later \
      ones still arrive, so that memory stays small however large the picture is.
      """,
    subcommands: [Serve.self, Process.self, Batch.self, Inspect.self, Filters.self])

  /// Runs the command, with the allocator's limits set before other threads allocate.
  static func main() async {
    Allocator.limitRetention(coreCount: SystemInfo.coreCount)
    await main(nil)
  }
}
