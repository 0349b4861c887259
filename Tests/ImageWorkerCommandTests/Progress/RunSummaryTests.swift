import FoundationEssentials
import ImagePipeline
import SwiftProtobuf
import SystemPackage
import Testing
import WorkerProtocol

@testable import ImageWorkerClient
@testable import image_worker

/// What is counted over a run, and its summary.
@Suite("Summary of a run")
struct RunSummaryTests {
  @Test("the summary has counts, time, rate, bytes and what was saved")
  func text() {
    let tally = RunTally.sample(total: 20, done: 12, failed: 3, skipped: 4, ignored: 1)
    #expect(
      RunSummary(tally, elapsed: .milliseconds(2500)).text == """
        20 images in 2.5 s, 6.0 images/s: 12 done, 3 failed, 4 skipped, 1 ignored
        12.0 KiB in, 3.0 KiB out, saved 75.0%
        """)
  }

  @Test("a stopped run reports how far it got")
  func stopped() {
    let text = RunSummary(.sample(total: 60, failed: 2), elapsed: .seconds(1)).text
    #expect(text == "2 of 60 images in 1.0 s, 2.0 images/s: 0 done, 2 failed")
  }

  @Test("as JSON it has the number of images of the run, and whether the run was interrupted")
  func json() throws {
    let tally = RunTally.sample(total: 60, done: 2)
    let line = try JSONText.line(["summary": RunSummary(tally, elapsed: .seconds(1), isInterrupted: true)])
    for part in ["\"total\":60", "\"images\":2", "\"interrupted\":true"] { #expect(line.contains(part), "\(line)") }
    #expect(!line.contains("skipped_links"))
    let complete = RunSummary(tally, elapsed: .seconds(1), skippedLinkCount: 3)
    #expect(try JSONText.line(complete).contains("\"skipped_links\":3") && !complete.interrupted)
  }

  @Test("an image with several results counts once, and fails if one of them does")
  func renditions() {
    let requested = RequestedResults(results: [])
    let image = BatchImage(path: "a.jpg", folder: "", name: "a", isFound: false)
    let done = ResultLine(
      image, LocalImage.Written(id: "small", destination: "a.jpg", outcome: .done(.sample)), requested)
    var tally = RunTally(total: 2)
    tally.add([done, done])
    #expect(tally[.done] == 1 && tally.inputBytes == 1024 && tally.outputBytes == 512)
    tally.add([done, ResultLine(image, PipelineError(.corruptImage, "it is damaged"))])
    #expect(tally[.done] == 1 && tally[.failed] == 1 && tally.completed == 2)
    #expect(tally.inputBytes == 2048 && tally.outputBytes == 768)
  }

  @Test("a worker's numbers may have any size", arguments: [UInt64.max, 1 << 63, 0])
  func foreignNumbers(_ number: UInt64) throws {
    var report = ImageWorkerClient.ProcessingReport()
    (report.inputBytes, report.outputBytes, report.peakMemoryBytes) = (number, number, number)
    let time = Google_Protobuf_Duration(
      seconds: Int64(bitPattern: number), nanos: Int32(truncatingIfNeeded: number))
    (report.timings.decode, report.timings.queued, report.timings.total) = (time, time, time)
    report.facts.dominantColors = [.with { $0.share = number == 0 ? .nan : .infinity }]
    let result = ImageResult(data: Data(count: 3), header: ImageWorkerClient.ImageInfo(), report: report)
    let image = BatchImage(path: "a.jpg", folder: "", name: "a", isFound: false)
    let line = ResultLine(image, result, inputByteCount: 5, output: "b.jpg")
    #expect(try JSONText.line(line).contains("\"output_bytes\":3"))
    var tally = RunTally(total: 2)
    for _ in 0..<2 { tally.add([line, line]) }
    #expect(tally.inputBytes == min(5, number) * 2 && tally.outputBytes == 12)
    let text = RunSummary(tally, elapsed: .seconds(1)).text
    #expect(text.contains("2 images") && text.contains(", 20.0% larger") == (number > 0))
  }

  @Test(
    "numbers with more digits than an integer are readable", arguments: [1e30, -.greatestFiniteMagnitude, .infinity])
  func largeNumbers(_ number: Double) {
    #expect(ReadableText.number(number, digits: 1) == "\(number)")
  }

  @Test("of many failures the first are listed, and the others counted")
  func shortList() {
    var list = ShortList(title: "failed", maxEntryCount: 20)
    #expect(list.text(columnCount: 80) == nil)
    for number in 1...20 { list.add("\(number).jpg") }
    #expect(list.text(columnCount: 80)?.hasSuffix("\n  20.jpg") == true)
    for number in 21...23 { list.add("\(number).jpg") }
    let lines = list.text(columnCount: 80)?.split(separator: "\n") ?? []
    #expect(lines.count == 22 && lines.first == "23 failed:" && lines.last == "  and 3 more; --json lists all")
  }

  @Test("entries are wrapped at words")
  func wrapping() {
    #expect(
      ReadableText.wrapped("a.jpg: the image is truncated", columnCount: 16, indent: 2) == [
        "  a.jpg: the", "    image is", "    truncated",
      ])
    #expect(ReadableText.wrapped("a/long/path.jpg: x", columnCount: 10, indent: 2) == ["  a/long/path.jpg:", "    x"])
  }

  @Test(
    "sizes have the unit that suits them",
    arguments: [
      (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_048_575, "1.0 MiB"), (15_472, "15.1 KiB"),
      (3 << 30, "3.0 GiB"), (5000 << 40, "5000.0 TiB"),
    ] as [(UInt64, String)])
  func sizes(count: UInt64, text: String) { #expect(ReadableText.byteCount(count) == text) }

  @Test(
    "times have hours where they need them", arguments: [(0, "0:00"), (9, "0:09"), (600, "10:00"), (3729, "1:02:09")])
  func times(seconds: Int, text: String) { #expect(ReadableText.clock(.seconds(seconds)) == text) }

  @Test("numbers are rounded, with their sign", arguments: [(-0.04, "0.0"), (-12.36, "-12.4"), (99.95, "100.0")])
  func numbers(value: Double, text: String) { #expect(ReadableText.number(value, digits: 1) == text) }
}
