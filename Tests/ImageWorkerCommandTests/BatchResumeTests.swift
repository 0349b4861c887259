import ArgumentParser
import Foundation
import ImageCodecs
import SystemPackage
import TestSupport
import Testing

@testable import image_worker

/// The journal of a batch, and runs that go on with it.
@Suite("Resumed batches", .timeLimit(.minutes(15)))
struct BatchResumeTests {
  private let scratch: ScratchFolder

  init() throws { scratch = try ScratchFolder() }

  private var folder: String { scratch.path("in") }
  private var out: String { scratch.path("out") }

  private func batch(_ arguments: String...) async throws {
    let batch = try #require(
      try Batch.parseAsRoot([folder, "--out", out, "--quiet", "--preset", "favicon"] + arguments) as? Batch)
    try await batch.run()
  }

  /// When each result was written.
  private func times() throws -> [String: Date] {
    try scratch.files(in: "out").reduce(into: [:]) { times, name in
      times[name] = try FileManager.default.attributesOfItem(atPath: "\(out)/\(name)")[.modificationDate] as? Date
    }
  }

  private func records() throws -> [BatchJournal.Record] {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try scratch.text("out/.image-worker/journal.jsonl").split(separator: "\n").map {
      try decoder.decode(BatchJournal.Record.self, from: Data($0.utf8))
    }
  }

  @Test("a second run repeats nothing, and does what has changed")
  func resume() async throws {
    for name in ["a.jpg", "b.jpg", "c.jpg"] { try scratch.add("in/\(name)", Fixture.bytes("photo-420.jpg")) }
    try scratch.add("in/notes.txt", Array("only words, many of them, and no image".utf8))
    try await batch()
    let first = try times()
    let places = try records().map(\.place)
    #expect(first.count == 3 && places.sorted() == ["a", "b", "c", "notes"])
    try await batch()
    let count = try records().count
    #expect(try times() == first && count == 4)

    try scratch.add("in/a.jpg", Fixture.bytes("photo-gray.jpg"))
    #expect(unlink("\(out)/b.jpg") == 0)
    try await batch()
    let second = try times()
    #expect(second["c.jpg"] == first["c.jpg"] && second["a.jpg"] != first["a.jpg"] && second["b.jpg"] != first["b.jpg"])

    try await batch("--quality", "0.3")
    let third = try times()
    #expect(third.keys == second.keys && third.allSatisfy { second[$0.key] != $0.value })
    try await batch("--quality", "0.3", "--fresh")
    let fourth = try times()
    let freshCount = try records().count
    #expect(fourth.allSatisfy { third[$0.key] != $0.value } && freshCount == 4)
  }

  @Test("a line that a killed run did not complete is left out, and so are its files")
  func torn() async throws {
    for name in ["a.jpg", "b.jpg"] { try scratch.add("in/\(name)", Fixture.bytes("photo-420.jpg")) }
    try await batch()
    let journal = "out/.image-worker/journal.jsonl"
    let lines = try scratch.text(journal).split(separator: "\n")
    _ = try scratch.write(Array((lines[0] + "\n" + lines[1].prefix(40)).utf8), to: journal)
    // Of a process that cannot exist any more.
    try scratch.add("out/.image-worker.99999999.1.part", [1])
    try await batch()
    #expect(try scratch.files(in: "out") == ["a.jpg", "b.jpg"])
    let text = try scratch.text(journal).split(separator: "\n")
    #expect(text.count == 3 && text[0] == lines[0] && text[2].contains("\"place\":"))
  }

  @Test("two batches do not write to one directory at the same time")
  func locked() async throws {
    try scratch.add("in/a.jpg", Fixture.bytes("photo-420.jpg"))
    try await batch()
    let journal = try BatchJournal(directory: FilePath(out), for: .run(isFresh: false))
    await #expect(throws: JournalError.self) { try await batch() }
    withExtendedLifetime(journal) {}
  }

  @Test("failed images are listed in a manifest that a further run accepts")
  func failures() async throws {
    try scratch.add("in/sub/a.jpg", Fixture.bytes("photo-420.jpg"))
    let cut = try scratch.add("in/sub/cut.jpg", Array(Fixture.bytes("photo-420.jpg").prefix(3000)))
    await #expect(throws: ExitCode(1)) { try await batch() }
    let failures = scratch.path("out/.image-worker/failures.jsonl")
    let rows = try BatchManifest.rows(of: Data(contentsOf: URL(fileURLWithPath: failures)), name: "").map(\.row)
    #expect(
      rows.map(\.output) == ["sub/cut"] && rows.map { URL(fileURLWithPath: $0.path).lastPathComponent } == ["cut.jpg"])

    _ = try scratch.write(Fixture.bytes("photo-420.jpg"), to: "in/sub/cut.jpg")
    let again = try #require(
      try Batch.parseAsRoot(["--manifest", failures, "--out", out, "--quiet", "--preset", "favicon"]) as? Batch)
    try await again.run()
    #expect(try scratch.files(in: "out/sub") == ["a.jpg", "cut.jpg"])
    #expect(!FileManager.default.fileExists(atPath: failures), "\(cut)")
    // The run over the folder has nothing left to do.
    let before = try records().count
    try await batch()
    #expect(try records().count == before)
  }

  @Test("a run that does not reach all images keeps the others in the list")
  func failuresOfOthers() async throws {
    for name in ["a.jpg", "b.jpg"] { try scratch.add("in/\(name)", Array(Fixture.bytes("photo-420.jpg").prefix(3000))) }
    await #expect(throws: ExitCode(1)) { try await batch() }
    let failures = scratch.path("out/.image-worker/failures.jsonl")
    func lines() throws -> [Substring] {
      try scratch.text("out/.image-worker/failures.jsonl").split(separator: "\n").sorted()
    }
    let before = try lines()
    // Nobody serves this port.
    let lost = try #require(
      try Batch.parseAsRoot([
        "--manifest", failures, "--out", out, "--quiet", "--to", "127.0.0.1:1", "--give-up-seconds", "1",
      ]) as? Batch)
    await #expect(throws: ExitCode.self) { try await lost.run() }
    #expect(try lines() == before)
  }

  @Test("results of the list have the names that the batch gives them")
  func namesOfFailures() async throws {
    let cut = Array(Fixture.bytes("photo-420.jpg").prefix(3000))
    for name in ["a.jpg", "a.png", "e.jpg.png"] { try scratch.add("in/\(name)", cut) }
    await #expect(throws: ExitCode(1)) { try await batch() }
    let options = ["--quiet", "--preset", "favicon", "--tolerate-truncation"]
    let failures = scratch.path("out/.image-worker/failures.jsonl")
    let again = try #require(try Batch.parseAsRoot(["--manifest", failures, "--out", out] + options) as? Batch)
    try await again.run()
    let fresh = try #require(try Batch.parseAsRoot([folder, "--out", scratch.path("fresh")] + options) as? Batch)
    try await fresh.run()
    #expect(try scratch.files(in: "out") == scratch.files(in: "fresh"))
    #expect(try scratch.files(in: "out").count == 3)
  }

  @Test("what --skip-existing leaves alone is no result of a later run")
  func existing() async throws {
    try scratch.add("in/a.jpg", Fixture.bytes("photo-420.jpg"))
    try scratch.add("out/a.jpg", [1])
    try await batch("--skip-existing")
    #expect(try scratch.bytes("out/a.jpg") == [1])
    try await batch()
    #expect(try scratch.bytes("out/a.jpg") != [1])
  }

  @Test("an empty file in a folder that does not have the name of an image is ignored")
  func empty() async throws {
    try scratch.add("in/a.jpg", Fixture.bytes("photo-420.jpg"))
    try scratch.add("in/_SUCCESS")
    try await batch()
    #expect(try scratch.files(in: "out") == ["a.jpg"])
  }

  @Test("a damaged photograph in a folder fails, whatever its first bytes are")
  func damaged() async throws {
    let photo = Fixture.bytes("photo-420.jpg")
    let zeroed = [UInt8](repeating: 0, count: 512) + photo.dropFirst(512)
    for name in ["b.JPG", "c.jfif", "d.heic"] { try scratch.add("in/\(name)", zeroed) }
    try scratch.add("in/empty.png")
    try scratch.add("in/a.jpg", photo)
    try scratch.add("in/notes.txt", zeroed)
    await #expect(throws: ExitCode(1)) { try await batch() }
    let failures = scratch.path("out/.image-worker/failures.jsonl")
    let rows = try BatchManifest.rows(of: Data(contentsOf: URL(fileURLWithPath: failures)), name: "").map(\.row)
    #expect(rows.compactMap(\.output).sorted() == ["b", "c", "d", "empty"])
    #expect(try records().map(\.place).sorted() == ["a", "notes"])
  }

  @Test("a manifest names presets, overrides and outputs; lists keep their folders below --root")
  func manifest() async throws {
    let photo = try scratch.add("in/x/a.jpg", Fixture.bytes("photo-420.jpg"))
    let rows = [
      "path,preset,max-width,output", "\(photo),,9,one/small.png", "\(photo),,20,two", "\(photo),favicon,,three.jpg",
    ]
    let manifest = try scratch.add("rows.csv", Array(rows.joined(separator: "\n").utf8))
    let other = try #require(
      try Batch.parseAsRoot(["--manifest", manifest, "--out", scratch.path("rows"), "--quiet"]) as? Batch)
    try await other.run()
    #expect(try scratch.files(in: "rows") == ["one", "three.jpg", "two.jpg"])
    #expect(try Pixels.decode(try scratch.bytes("rows/one/small.jpg")).layout[0].width == 9)
    #expect(try Pixels.decode(try scratch.bytes("rows/two.jpg")).layout[0].width == 20)

    let list = try scratch.add("list", Array("\(photo)\0".utf8))
    let listed = try #require(
      try Batch.parseAsRoot([
        "--list", list, "--null", "--root", folder, "--out", scratch.path("listed"), "--quiet", "--preset", "favicon",
      ]) as? Batch)
    try await listed.run()
    #expect(try scratch.files(in: "listed/x") == ["a.jpg"])
  }

  @Test("a dry run writes nothing and estimates what a run takes")
  func dryRun() async throws {
    for number in 0..<40 { try scratch.add("in/\(number).jpg", Fixture.bytes("photo-420.jpg")) }
    try await batch("--list", try scratch.add("none"))
    let outcome = try await WorkerProgram.run([
      "batch", folder, "--out", out, "--preset", "favicon", "--dry-run", "--fresh", "--json", "--jobs", "2",
    ])
    let estimate = try #require(
      (try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: [String: Any]])?["estimate"])
    #expect(outcome.status == 0 && estimate["images"] as? Int == 40 && estimate["finished"] as? Int == 0)
    let byteCount = try scratch.files(in: "out").reduce(0) { try $0 + scratch.bytes("out/\($1)").count }
    #expect(estimate["output_bytes"] as? Int == byteCount && estimate["input_bytes"] as? Int == 40 * 15472)
    #expect((estimate["memory_bytes"] as? Int ?? 0) > 0 && (estimate["seconds"] as? Double ?? 0) > 0)
    let before = try times()
    let finished = try await WorkerProgram.run(["batch", folder, "--out", out, "--preset", "favicon", "--dry-run"])
    #expect(finished.output == "0 images to process, 0 B; 40 already finished\n")
    #expect(try times() == before)
  }
}
