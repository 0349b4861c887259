import Foundation
import ImageCodecs
import ImagePipeline
import SystemPackage
import TestSupport
import Testing
import WorkerProtocol
import WorkerTelemetry

@testable import ImageWorkerClient
@testable import image_worker

/// Names of files and texts of workers, which anybody may have chosen.
@Suite("Foreign names and texts", .timeLimit(.minutes(15)))
struct ForeignTextTests {
  private let scratch: ScratchFolder

  init() throws { scratch = try ScratchFolder() }

  /// The outcome of an image whose result has a format of the worker's choice.
  private func line(format: String) throws -> ResultLine {
    let image = BatchImage(path: "a.jpg", folder: "", name: "a", isFound: false)
    var result = ImageResult(data: Data([1, 2, 3]), header: ImageInfo(), report: ProcessingReport())
    result.report.output.format = format
    let requested = RequestedResults(results: [RequestedResult(id: "", configuration: .init())])
    let out = FilePath(scratch.path("out"))
    try FileSystem.makeDirectory(out)
    let output = BatchOutput(
      directory: out, images: [image], requested: requested, journal: nil, skipsExisting: false)
    let batch = BatchResult(
      key: RemoteImage.Key(image: image, version: nil), outcomes: .success(["": .success(result)]), preview: nil,
      attempts: 1, worker: "w:1")
    return try #require(RemoteImage(result: batch, output: output).write().first)
  }

  @Test(
    "a worker does not choose the names of results",
    arguments: ["php", "b/../../escaped", "../escaped", "", "jpg\0", "JPEG", "bmp", "\u{1b}[31m"])
  func formats(format: String) throws {
    let line = try line(format: format)
    #expect(line.status == .failed && line.error?.message.contains("must be jpeg, png, webp, gif, avif") == true)
    #expect(!line.text.contains("\u{1b}"))
    #expect(try scratch.names == ["out"] && scratch.files(in: "out").isEmpty)
  }

  @Test(
    "known formats become extensions",
    arguments: ImageFormat.allCases.compactMap { format in
      format.traits.output.map { (format.rawValue, $0.fileExtension) }
    })
  func knownFormats(format: String, ending: String) throws {
    let line = try line(format: format)
    #expect(line.status == .done, "\(line.text)")
    #expect(try scratch.files(in: "out") == ["a.\(ending)"])
  }

  private static let hostile = "a\u{1b}[31m\u{9b}2J\u{202e}\r\n\u{7f}b"

  @Test("lines and JSON of a result contain nothing that a terminal obeys")
  func lines() throws {
    let image = BatchImage(path: FilePath(Self.hostile), folder: "", name: "a", isFound: false)
    var failed = ResultLine(image, failure: ImageWorkerError.lost(Self.hostile))
    #expect(failed.text.hasPrefix("a\\u{1b}[31m\\u{9b}2J\\u{202e}\\u{d}\\n\\u{7f}b: "))
    failed.warnings = [Self.hostile]
    failed.output = Self.hostile
    let json = try JSONText.line(failed)
    var done = failed
    (done.status, done.error) = (.skipped, nil)
    for text in [failed.text, done.text.replacing("\n  warning:", with: " warning:"), json] {
      #expect(!text.unicodeScalars.contains { $0.isControlling }, "\(text.debugDescription)")
    }
    let read = try #require(JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
    #expect(read["output"] as? String == Self.hostile)
  }

  @Test("the program escapes names of files in results and in errors")
  func program() async throws {
    let name = "a\u{1b}[31m.jpg"
    let photo = try scratch.write(Fixture.bytes("photo-420.jpg"), to: name)
    for arguments in [
      ["process", photo, scratch.path("\u{1b}]0;x"), "--preset", "favicon", "--out", scratch.path("out")],
      ["inspect", photo], ["inspect", scratch.path("\u{1b}]0;x")], ["inspect", "--\u{1b}[31m"],
      ["batch", photo, "--list", scratch.path("\u{1b}"), "--out", scratch.path("out")],
    ] {
      let outcome = try await WorkerProgram.run(arguments)
      #expect(!(outcome.output + outcome.errors).contains("\u{1b}"), "\(arguments)")
      #expect((outcome.output + outcome.errors).contains("\\u{1b}"), "\(arguments)")
    }
  }
}
