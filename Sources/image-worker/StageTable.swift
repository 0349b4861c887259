internal import ImagePipeline

/// How long each stage of one image was busy, for a person to read: a table with a bar for each stage.
struct StageTable {
  private static let barWidth = 32

  let report: ProcessingReport

  /// One line a stage; indented, without a line end behind the last.
  var text: String {
    let timings = report.timings
    let stages = [
      ("decode", timings.decode), ("resize", timings.resize), ("filter", timings.filter), ("encode", timings.encode),
    ].filter { $0.1 > .zero }
    let busy = stages.reduce(Duration.zero) { $0 + $1.1 }
    let rows = stages + [("other", max(.zero, timings.total - busy))]
    let lines = rows.map { row($0.0, $0.1) }
    let peak = Double(report.peakMemoryByteCount) / 1_048_576
    return
      (["  stage       busy ms   share"] + lines + [row("total", timings.total, hasBar: false)]
      + ["  peak memory \(ReadableText.number(peak, digits: 1)) MiB"]).joined(separator: "\n")
  }

  private func row(_ name: String, _ duration: Duration, hasBar: Bool = true) -> String {
    let share = report.timings.total > .zero ? duration / report.timings.total : 0
    let milliseconds = ReadableText.number(duration / .milliseconds(1), digits: 3)
    let percent = ReadableText.number(share * 100, digits: 0)
    let line =
      "  \(ReadableText.padded(name, 8))\(ReadableText.padded(milliseconds, 11, atEnd: false)) \(ReadableText.padded(percent, 5, atEnd: false)) %"
    return hasBar ? "\(line)  \(Self.bar(share))" : line
  }

  /// Eighths of a character are the smallest step.
  private static func bar(_ share: Double) -> String {
    let eighths = Int((min(1, max(0, share)) * Double(barWidth * 8)).rounded())
    let parts = ["", "\u{258f}", "\u{258e}", "\u{258d}", "\u{258c}", "\u{258b}", "\u{258a}", "\u{2589}"]
    return String(repeating: "\u{2588}", count: eighths / 8) + parts[eighths % 8]
  }
}
