import ArgumentParser
import Foundation
import ImagePipeline
import TestSupport
import Testing

@testable import image_worker

/// `process` with a result that has a name, and with standard input and output.
@Suite("Named results", .timeLimit(.minutes(15)))
struct NamedResultTests {
  private let scratch: ScratchFolder
  private let photo: String

  init() throws {
    scratch = try ScratchFolder()
    photo = try scratch.write(Fixture.bytes("photo-420.jpg"), to: "photo.jpg")
  }

  private static func small(_ format: OutputFormat) throws -> [UInt8] {
    try TestSupport.process(
      Fixture.bytes("photo-420.jpg"),
      ProcessingConfiguration(maxWidth: 60, compressionQuality: format == .png ? 1 : 0.8, preferredFormat: format)
    ).bytes
  }

  @Test("one result goes to the file that --out names, in its format")
  func file() async throws {
    for (name, format) in [("a.jpg", OutputFormat.jpeg), ("deep/b.PNG", .png), ("deep/c.webp", .webp)] {
      let outcome = try await WorkerProgram.run(["process", photo, "--max-width", "60", "--out", scratch.path(name)])
      #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
      #expect(outcome.output.contains("-> \(scratch.path(name)): 60x40"))
      #expect(try scratch.bytes(name) == Self.small(format))
    }
    #expect(try scratch.names == ["a.jpg", "deep", "photo.jpg"])
  }

  @Test("a name with another ending, or with a slash, is a directory")
  func directory() async throws {
    try scratch.add("there.jpg/x")
    for name in ["results.v2", "slash.jpg/", "there.jpg"] {
      let outcome = try await WorkerProgram.run([
        "process", photo, "--max-width", "60", "--out", "\(scratch.url.path)/\(name)",
      ])
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(FileManager.default.fileExists(atPath: scratch.path("\(name)/photo.jpg")))
    }
  }

  @Test("a file that cannot be the result is a usage error and is not written")
  func refused() async throws {
    for (arguments, words) in [
      (["--out", scratch.path("a.bmp")], [".jpg, .png, .webp, .avif, .jxl, .gif or .raw"]),
      (["--out", scratch.path("a.jpg"), "--format", "webp"], ["--out is", "--format is webp"]),
      ([photo, "--out", scratch.path("a.jpg")], ["several results"]),
      (["--out", "-", "--rendition", "a: --pad"], ["several results"]),
      (["--out", scratch.path("a.jpg"), "--preview"], ["several results"]),
      (["-", "-", "--out", scratch.path("")], ["standard input has one image"]),
    ] as [([String], [String])] {
      let outcome = try await WorkerProgram.run(["process", photo] + arguments)
      #expect(outcome.status == 64 && outcome.output.isEmpty)
      for word in words { #expect(outcome.errors.contains(word), "\(outcome.errors)") }
    }
    let replacing = try await WorkerProgram.run(["process", photo, "--out", photo])
    #expect(replacing.status == 1 && replacing.errors.contains("its result would replace it"))
    #expect(try scratch.names == ["photo.jpg"] && scratch.bytes("photo.jpg") == Fixture.bytes("photo-420.jpg"))
  }

  @Test("- is standard input and standard output")
  func standardStreams() async throws {
    let bytes = Fixture.bytes("photo-420.jpg")
    let piped = try await WorkerProgram.run(
      ["process", "-", "--max-width", "60", "--out", "-", "--format", "webp"], input: bytes)
    #expect(try piped.status == 0 && piped.outputBytes == Self.small(.webp))
    #expect(piped.errors.hasPrefix("-: jpeg 240x160, 15472 bytes -> -: 60x40, ") && piped.errors.contains("1 done"))
    let quiet = try await WorkerProgram.run(
      ["process", photo, "--max-width", "60", "--out", "-", "--quiet"])
    #expect(try quiet.outputBytes == Self.small(.jpeg) && quiet.errors.isEmpty)
    let named = try await WorkerProgram.run(
      ["process", "-", "--max-width", "60", "--out", scratch.path("out"), "--rendition", "s: --format webp", "--json"],
      input: bytes)
    #expect(try named.status == 0 && scratch.files(in: "out") == ["image-s.webp"])
    #expect(named.output.contains("\"input\":\"-\"") && named.output.contains("\"input_bytes\":15472"))
    let cut = try await WorkerProgram.run(["process", "-", "--out", "-"], input: Array(bytes.prefix(3000)))
    #expect(cut.status == 1 && cut.errors.contains("-: TRUNCATED_IMAGE: "))
    let empty = try await WorkerProgram.run(["process", "-", "--out", "-"])
    #expect(empty.status == 1 && empty.outputBytes.isEmpty && empty.errors.contains("EMPTY_IMAGE"))
    let card = try await WorkerProgram.run(["inspect", "-"], input: bytes)
    #expect(card.output.contains("240x160"))
  }

  @Test("results of a part of the bytes are reported with the size of the file")
  func sizes() async throws {
    let bytes = Fixture.bytes("photo-420.jpg")
    let tail = [UInt8](repeating: 0, count: 50_000)
    let long = try scratch.write(bytes + tail, to: "long.jpg")
    let outcome = try await WorkerProgram.run(
      ["process", long, "--crop", "0,0,100x10", "--json", "--out", scratch.path("out")])
    let objects = try outcome.output.split(separator: "\n").map {
      try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
    #expect(objects.first?["input_bytes"] as? Int == bytes.count + tail.count)
    let read = try #require(objects.first?["read_bytes"] as? Int)
    #expect(read > 0 && read <= bytes.count)
    let summary = try #require(objects.last?["summary"] as? [String: Any])
    #expect(summary["input_bytes"] as? Int == bytes.count + tail.count)
  }

  @Test("--quiet keeps warnings, on standard error")
  func warnings() async throws {
    let cut = try scratch.write(Fixture.bytes("photo-420.jpg").prefix(12000), to: "cut.jpg")
    for options in [[], ["--json"]] {
      let outcome = try await WorkerProgram.run(
        ["process", cut, photo, "--tolerate-truncation", "--quality", "0.5", "--quiet", "--out", scratch.path("out")]
          + options)
      #expect(outcome.status == 0 && outcome.output.isEmpty)
      #expect(outcome.errors.hasPrefix("\(cut): warning: ") && outcome.errors.count { $0 == "\n" } == 1)
    }
  }

  @Test("an option that sets a size or a format makes the quality 0.8 unless something sets it")
  func quality() throws {
    func quality(_ arguments: String...) throws -> Double? {
      let process = try image_worker.Process.parse(["a.jpg", "--out", "o"] + arguments)
      return try process.results.requested.results.last?.configuration.compressionQuality
    }
    for arguments in [
      ["--max-width", "9"], ["--max-height", "9"], ["--format", "webp"], ["--crop", "0,0,9x9"],
      ["--format", "jpeg", "--max-bytes", "9000"], ["--rendition", "a: --max-width 9"],
    ] {
      let process = try image_worker.Process.parse(["a.jpg", "--out", "o"] + arguments)
      #expect(try process.results.requested.results[0].configuration.compressionQuality == 0.8, "\(arguments)")
      #expect(try process.results.requested.results[0].overrides.compressionQuality == 0.8, "sent to workers")
    }
    #expect(try quality() == 1 && quality("--filter", "sepia") == 1 && quality("--format", "original") == 1)
    #expect(try quality("--max-width", "9", "--quality", "0.9") == 0.9)
    #expect(try quality("--max-width", "9", "--target-similarity", "90") == 1)
    #expect(try quality("--format", "png", "--max-width", "9") == 1)
    #expect(try quality("--format", "webp", "--lossless") == 1)
    #expect(try quality("--preset", "thumbnail", "--max-width", "9") == 1)
  }
}
