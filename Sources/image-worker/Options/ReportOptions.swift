internal import ArgumentParser
internal import SystemPackage
internal import WorkerTelemetry

/// The options by which `process` and `batch` report.
struct ReportOptions: ParsableArguments {
  @Flag(help: "Print a JSON object per result, one per line, then one with the summary.")
  var json = false
  @Flag(help: "Report only failures and warnings, except those of --never-larger, on standard error.")
  var quiet = false
  @Option(
    help: ArgumentHelp(
      "Write a timeline of all stages and threads as Chrome trace events; open it in Perfetto.",
      valueName: "file"),
    completion: .file())
  var traceOut: String?

  func validate() throws {
    if traceOut == StandardInput.name {
      throw ValidationError("--trace-out is -; name a file.")
    }
  }

  /// Runs `body` with the trace that is requested, if one is.
  /// - `destinations`: the files that the command reads and writes.
  func withTrace(_ destinations: Destinations, _ body: (ChromeTrace?) async throws -> Void) async throws {
    guard let traceOut else { return try await body(nil) }
    let file = FilePath(text: traceOut)
    try destinations.claim(file, ofOption: "--trace-out")
    try await ChromeTrace.write(to: file, body)
  }
}
