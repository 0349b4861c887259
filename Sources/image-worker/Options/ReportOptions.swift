internal import ArgumentParser

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
}
