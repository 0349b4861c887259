import ImagePipeline
import SystemPackage
import Testing

@testable import image_worker

/// The line that shows the progress of a run.
@Suite("Progress line")
struct ProgressLineTests {
  private static let halfway = ProgressLine(
    tally: .sample(total: 300, done: 140, failed: 4, skipped: 6), elapsed: .seconds(12))

  @Test("it fills a terminal of 80 columns but the last")
  func narrow() {
    #expect(
      Self.halfway.text(columnCount: 80, usesColor: false)
        == "[=====>    ]  150/300  12.0 images/s  140.0 KiB -> 35.0 KiB  ETA 0:13  4 failed")
  }

  @Test("the bar grows with a terminal of 200 columns")
  func wide() {
    let text = Self.halfway.text(columnCount: 200, usesColor: false)
    #expect(text.count == 199)
    #expect(text.hasPrefix("[" + String(repeating: "=", count: 65) + ">"))
    #expect(text.contains("]  150/300  12.0 images/s  140.0 KiB -> 35.0 KiB  ETA 0:13  4 failed"))
  }

  @Test("the bar keeps its width while the numbers grow")
  func stable() {
    let begin = ProgressLine(tally: RunTally(total: 300), elapsed: .zero).text(columnCount: 100, usesColor: false)
    let end = ProgressLine(tally: .sample(total: 300, done: 300), elapsed: .seconds(5))
      .text(columnCount: 100, usesColor: false)
    #expect(begin.contains("]    0/300  0.0 images/s  0 B -> 0 B  ETA -:--") && end.contains("]  300/300  "))
    #expect(begin.prefix { $0 != "]" }.count == end.prefix { $0 != "]" }.count)
    #expect(!end.contains(">  ") && end.contains("=]"))
  }

  @Test("no width is exceeded; the count goes last", arguments: 1...120)
  func anyWidth(columnCount: Int) {
    let text = Self.halfway.text(columnCount: columnCount, usesColor: false)
    #expect(text.count == max(1, columnCount - 1) && !text.contains("\n"))
    if columnCount > 8 { #expect(text.contains("150/300")) }
    if columnCount > 18 { #expect(text.contains("4 failed")) }
  }

  @Test("colors change no character", arguments: [20, 80, 200])
  func colors(columnCount: Int) {
    let colored = Self.halfway.text(columnCount: columnCount, usesColor: true)
    #expect(colored.contains("\u{1b}[31m4 failed\u{1b}[0m"))
    #expect(
      colored.replacing(/\u{1b}\[[0-9]+m/, with: "") == Self.halfway.text(columnCount: columnCount, usesColor: false))
  }

  @Test("what was skipped does not shorten the remaining time")
  func remainingTime() {
    // One image in 10 seconds, and 9 to go.
    let line = ProgressLine(tally: .sample(total: 1000, done: 1, skipped: 990), elapsed: .seconds(10))
    #expect(
      line.text(columnCount: 100, usesColor: false).contains("991/1000  0.1 images/s  1.0 KiB -> 256 B  ETA 1:30"))
  }
}

extension RunTally {
  /// A tally of images of 1024 bytes with results of 256 bytes.
  static func sample(
    total: Int, done: Int = 0, failed: Int = 0, skipped: Int = 0, ignored: Int = 0
  ) -> RunTally {
    let image = BatchImage(path: "a.jpg", folder: "", name: "a", isFound: true)
    let requested = RequestedResults(results: [RequestedResult(id: "", configuration: ProcessingConfiguration())])
    let line = { (outcome: LocalImage.Outcome) in
      ResultLine(image, LocalImage.Written(id: "", destination: "out/a.jpg", outcome: outcome), requested)
    }
    var tally = RunTally(total: total)
    for _ in 0..<done { tally.add([line(.done(.sample))]) }
    for _ in 0..<failed { tally.add([line(.failed(PipelineError(.corruptImage, "it is damaged")))]) }
    for _ in 0..<skipped { tally.add([line(.skipped)]) }
    let text = BatchImage(path: "a.txt", folder: "", name: "a", isFound: true)
    for _ in 0..<ignored { tally.add([ResultLine(text, PipelineError(.unknownFormat, "it is text"))]) }
    return tally
  }
}

extension ProcessingReport {
  /// A report of 1024 bytes in and 256 bytes out.
  static var sample: ProcessingReport {
    let info = ImageInfo(
      format: "jpeg", size: PixelSize(width: 8, height: 6), orientation: 1, hasAlpha: false, bitDepth: 8,
      colorSpace: "ycbcr", frameCount: 1)
    return ProcessingReport(
      input: info, output: info, inputByteCount: 1024, outputByteCount: 256, timings: StageTimings(),
      peakMemoryByteCount: 0, warnings: [])
  }
}
