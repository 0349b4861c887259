/// The summary at the end of a run.
struct RunSummary: Sendable, Encodable {
  /// The number of images that have ended; less than the run had if it was stopped.
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

  private let total: Int

  private enum CodingKeys: CodingKey {
    case images, done, failed, skipped, ignored, inputBytes, outputBytes, savedPercent, seconds, imagesPerSecond
  }

  init(_ tally: RunTally, elapsed: Duration) {
    total = tally.total
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
    return "\(first)\n\(input) in, \(output) out, saved \(ReadableText.number(savedPercent, digits: 1))%"
  }

  private static func rounded(_ value: Double, to scale: Double) -> Double { (value * scale).rounded() / scale }
}
