/// The summary at the end of a run.
struct RunSummary: Sendable, Encodable {
  let total: Int
  /// The number of images that have ended; less than ``total`` if the run was interrupted.
  let images: Int
  let done: Int
  let failed: Int
  let skipped: Int
  let ignored: Int
  let inputBytes: UInt64
  let outputBytes: UInt64
  /// Percent of the bytes; negative if the results are larger, `nil` without results.
  let savedPercent: Double?
  let seconds: Double
  let imagesPerSecond: Double
  /// Whether a signal or an error ended the run before all images had ended.
  let interrupted: Bool
  /// The number of symbolic links in folders that were not followed; `nil` without any.
  let skippedLinks: Int?

  /// - `isInterrupted`: whether the run was ended early.
  init(_ tally: RunTally, elapsed: Duration, isInterrupted: Bool = false, skippedLinkCount: Int = 0) {
    total = tally.total
    interrupted = isInterrupted
    skippedLinks = skippedLinkCount > 0 ? skippedLinkCount : nil
    images = tally.completed
    (done, failed) = (tally[.done], tally[.failed])
    (skipped, ignored) = (tally[.skipped], tally[.ignored])
    (inputBytes, outputBytes) = (tally.inputBytes, tally.outputBytes)
    let saved = tally.inputBytes > 0 ? 100 - 100 * Double(tally.outputBytes) / Double(tally.inputBytes) : nil
    savedPercent = saved.map { Self.rounded($0, to: 10) }
    seconds = Self.rounded(elapsed / .seconds(1), to: 1000)
    imagesPerSecond = Self.rounded(tally.rate(over: elapsed), to: 10)
  }

  /// Two lines of less than 80 characters, without a line end behind the last.
  var text: String {
    let number = images < total ? "\(images) of \(total) images" : images == 1 ? "1 image" : "\(images) images"
    let statuses = [("done", done), ("failed", failed), ("skipped", skipped), ("ignored", ignored)]
    let counts = statuses.filter { $0.1 > 0 || $0.0 == "done" }.map { "\($0.1) \($0.0)" }.joined(separator: ", ")
    let rate = ReadableText.number(imagesPerSecond, digits: 1)
    let first = "\(number) in \(ReadableText.number(seconds, digits: 1)) s, \(rate) images/s: \(counts)"
    guard let savedPercent else { return first }
    let (input, output) = (ReadableText.byteCount(inputBytes), ReadableText.byteCount(outputBytes))
    let change = "\(ReadableText.number(abs(savedPercent), digits: 1))%"
    return "\(first)\n\(input) in, \(output) out, \(savedPercent < 0 ? "\(change) larger" : "saved \(change)")"
  }

  private static func rounded(_ value: Double, to scale: Double) -> Double { (value * scale).rounded() / scale }
}
