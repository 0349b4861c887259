internal import ImageWorkerClient

/// The line that shows the progress of a run on a terminal.
struct ProgressLine {
  private enum Color: String {
    case green = "32"
    case red = "31"
  }

  private static let minBarWidth = 8
  /// Space for the numbers, so that the bar keeps its width while they grow.
  private static let numbersWidth = 62

  let tally: RunTally
  let elapsed: Duration
  /// The state of each worker; empty without workers.
  var workers: [WorkerStatus] = []

  /// The line, without a line end, of one character less than the terminal is wide.
  ///
  /// The bar gets what space there is. On a narrow terminal, the bar and the single workers are left out first, then the
  /// number of workers, the bytes, the rate, the remaining time and the failures.
  func text(columnCount: Int, usesColor: Bool) -> String {
    // A character in the last column would move some terminals to the next line.
    let width = max(1, columnCount - 1)
    var segments = [count, rate, bytes, remaining] + [workerCount, workerList, failures].compactMap { $0 }
    // The list has place only where the bar has, too.
    let listWidth = width - Self.minBarWidth - 4
    if Self.joined(segments).count > listWidth { segments.removeAll { $0 == workerList } }
    for dropped in [workerCount, bytes, rate, remaining, failures] where Self.joined(segments).count > width {
      segments.removeAll { $0 == dropped }
    }
    let numbers = String(Self.joined(segments).prefix(width))
    let barWidth = width - max(numbers.count, min(Self.numbersWidth, width)) - 4
    let bar = barWidth >= Self.minBarWidth ? bar(barWidth) : nil
    let space = String(repeating: " ", count: width - numbers.count - (bar.map { $0.count + 2 } ?? 0))
    guard usesColor else { return (bar.map { $0 + "  " } ?? "") + numbers + space }
    let coloredBar = bar.map { Self.colored($0, .green) + "  " } ?? ""
    guard let failures, numbers.hasSuffix(failures) else { return coloredBar + numbers + space }
    return coloredBar + numbers.dropLast(failures.count) + Self.colored(failures, .red) + space
  }

  private var count: String {
    ReadableText.padded("\(tally.completed)", "\(tally.total)".count, atEnd: false) + "/\(tally.total)"
  }

  private var rate: String { "\(ReadableText.number(tally.rate(over: elapsed), digits: 1)) images/s" }

  private var bytes: String {
    "\(ReadableText.byteCount(tally.inputBytes)) -> \(ReadableText.byteCount(tally.outputBytes))"
  }

  /// As long as the images so far took; those that were skipped took no time.
  private var remaining: String {
    guard tally.processed > 0 else { return "ETA -:--" }
    let seconds = elapsed / .seconds(1) / Double(tally.processed) * Double(tally.total - tally.completed)
    return "ETA \(ReadableText.clock(.seconds(seconds)))"
  }

  /// The workers that can be reached.
  private var workerCount: String? {
    workers.isEmpty ? nil : "\(workers.count { $0.error == nil })/\(workers.count) workers"
  }

  /// Each worker with the images that ended there and those that are in flight.
  private var workerList: String? {
    if workers.isEmpty { return nil }
    return Self.joined(
      workers.map { worker in
        "\(worker.address) \(worker.error == nil ? "\(worker.itemsDone)+\(worker.itemsInFlight)" : "down")"
      })
  }

  private var failures: String? { tally[.failed] > 0 ? "\(tally[.failed]) failed" : nil }

  /// - `width`: without the brackets.
  private func bar(_ width: Int) -> String {
    let filled = tally.total > 0 ? width * tally.completed / tally.total : 0
    let head = filled < width ? ">" : ""
    let space = String(repeating: " ", count: width - filled - head.count)
    return "[" + String(repeating: "=", count: filled) + head + space + "]"
  }

  private static func joined(_ segments: [String]) -> String { segments.joined(separator: "  ") }

  private static func colored(_ text: String, _ color: Color) -> String {
    "\u{1b}[\(color.rawValue)m\(text)\u{1b}[0m"
  }
}
