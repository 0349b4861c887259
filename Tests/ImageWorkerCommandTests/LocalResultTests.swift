import ArgumentParser
import Foundation
import ImageCodecs
import ImagePipeline
import SystemPackage
import TestSupport
import Testing

@testable import image_worker

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The results of `process` and `batch`, run inside the test process.
@Suite("Results of local commands", .timeLimit(.minutes(15)))
struct LocalResultTests {
  private let scratch: ScratchFolder

  init() throws { scratch = try ScratchFolder() }

  private var out: String { "\(scratch.url.path)/out" }

  private func process(_ arguments: String...) async throws {
    let process = try #require(
      try image_worker.Process.parseAsRoot(arguments + ["--out", out, "--quiet"]) as? image_worker.Process)
    try await process.run()
  }

  private func batch(_ arguments: String...) async throws {
    let batch = try #require(try Batch.parseAsRoot(arguments + ["--quiet"]) as? Batch)
    try await batch.run()
  }

  private func images(_ inputs: [String], suffixes: [String] = [""]) throws -> [BatchImage] {
    try BatchInputs.images(
      in: inputs.map { BatchInput(path: FilePath($0)) }, output: FilePath(out), suffixes: suffixes
    ).images
  }

  @Test("renditions of an image share one decode, each in its own file")
  func renditions() async throws {
    let photo = try scratch.add("photo.jpg", Fixture.bytes("photo-420.jpg"))
    try await process(photo, "--rendition", "small: --max-width 60", "--rendition", "tiny: --max-width 9 --format png")
    #expect(try scratch.files(in: "out") == ["photo-small.jpg", "photo-tiny.png"])
    let together = try TestSupport.process(
      Fixture.bytes("photo-420.jpg"),
      [
        ProcessingConfiguration(maxWidth: 60, compressionQuality: 0.8, preferredFormat: .original),
        ProcessingConfiguration(maxWidth: 9, compressionQuality: 1, preferredFormat: .png),
      ])
    #expect(try scratch.bytes("out/photo-small.jpg") == together.results[0].get().bytes)
    #expect(try scratch.bytes("out/photo-tiny.png") == together.results[1].get().bytes)
  }

  @Test("one rendition's error does not affect the others")
  func renditionError() async throws {
    let photo = try scratch.add("photo.jpg", Fixture.bytes("photo-420.jpg"))
    await #expect(throws: ExitCode.self) {
      try await process(photo, "--rendition", "far: --crop 5000,0,10x10", "--rendition", "good: --max-width 9")
    }
    #expect(try scratch.files(in: "out") == ["photo-good.jpg"])
  }

  @Test("a preview is written next to the result, which is the same without it")
  func preview() async throws {
    let photo = try scratch.add("photo.png", Fixture.bytes("photo.png"))
    try await process(photo, "--preset", "favicon")
    let plain = try scratch.bytes("out/photo.jpg")
    try await process(photo, "--preset", "favicon", "--preview")
    #expect(try scratch.files(in: "out") == ["photo-preview.jpg", "photo.jpg"])
    #expect(try scratch.bytes("out/photo.jpg") == plain)
    #expect(try Pixels.decode(try scratch.bytes("out/photo-preview.jpg")).layout[0].width == 64)
  }

  @Test("the orientation behind the data of a PNG is applied, unless it comes from standard input")
  func lateOrientation() async throws {
    let late = Container.png(Fixture.bytes("photo.png"), appending: [("eXIf", Container.exif(orientation: 6))])
    let early = Container.png(Fixture.bytes("photo.png"), adding: [("eXIf", Container.exif(orientation: 6))])
    let expected = try TestSupport.process(early, ProcessingConfiguration()).bytes
    try await process(try scratch.add("late.png", late))
    #expect(try scratch.bytes("out/late.png") == expected)
    let streamed = try await WorkerProgram.run(["process", "-", "--out", "-"], input: late)
    #expect(try streamed.outputBytes == TestSupport.process(late, ProcessingConfiguration()).bytes)
    #expect(streamed.errors.contains("follows the image data"))
  }

  @Test("options change the result as the contract's fields do")
  func options() async throws {
    let photo = try scratch.add("photo.png", Fixture.bytes("photo.png"))
    try await process(
      photo, "--crop", "10,20,30x40", "--rotation", "90", "--max-width", "40", "--max-height", "40", "--pad",
      "--background", "#ff0000", "--format", "png")
    let expected = try TestSupport.process(
      Fixture.bytes("photo.png"),
      ProcessingConfiguration(
        maxWidth: 40, maxHeight: 40, compressionQuality: 1, preferredFormat: .png,
        crop: Crop(x: 10, y: 20, width: 30, height: 40), pad: true, rotation: 90,
        background: Color(red: 255, green: 0, blue: 0)))
    #expect(try scratch.bytes("out/photo.png") == expected.bytes)
  }

  @Test("a batch produces renditions and previews too")
  func batchRenditions() async throws {
    for name in ["a.jpg", "b.jpg"] { try scratch.add("in/\(name)", Fixture.bytes("photo-420.jpg")) }
    try await batch(
      "\(scratch.url.path)/in", "--out", out, "--rendition", "s: --max-width 9", "--rendition", "t: --max-width 8")
    #expect(try scratch.files(in: "out") == ["a-s.jpg", "a-t.jpg", "b-s.jpg", "b-t.jpg"])
    try await batch("\(scratch.url.path)/in", "--out", "\(scratch.url.path)/again", "--max-width", "9", "--preview")
    #expect(try scratch.files(in: "again") == ["a-preview.jpg", "a.jpg", "b-preview.jpg", "b.jpg"])
  }

  @Test("only regular files are read: a pipe in a folder is ignored, one named explicitly fails")
  func pipes() async throws {
    try scratch.add("in/a.jpg", Fixture.bytes("photo-420.jpg"))
    let pipe = "\(scratch.url.path)/in/pipe.jpg"
    #expect(mkfifo(pipe, 0o600) == 0)
    try await batch("\(scratch.url.path)/in", "--out", out, "--preset", "favicon")
    #expect(try scratch.files(in: "out") == ["a.jpg"])
    await #expect(throws: ExitCode(1)) { try await batch(pipe, "--out", out) }
    await #expect(throws: ExitCode(1)) { try await process(pipe) }
    let found = try images(["\(scratch.url.path)/in"])
    #expect(found.map { $0.problem == nil } == [true, false])
    #expect(ResultLine(found[1], BatchProblem.noRegularFile).status == .ignored)
  }

  @Test("result names are deterministic and unique")
  func names() async throws {
    try scratch.add("in/a.jpg", Fixture.bytes("photo-420.jpg"))
    try scratch.add("in/a.jpg.jpg", Fixture.bytes("photo-gray.jpg"))
    try scratch.add("in/a.png", Fixture.bytes("photo.png"))
    let settled = try images(["\(scratch.url.path)/in"])
    #expect(settled.map(\.name) == ["a.jpg", "a.jpg.jpg", "a.png"] && settled.allSatisfy { $0.problem == nil })
    try await batch("\(scratch.url.path)/in", "--out", out, "--preset", "favicon")
    #expect(try scratch.files(in: "out") == ["a.jpg.jpg", "a.jpg.jpg.jpg", "a.png.jpg"])
    let all = try scratch.files(in: "out").map { try scratch.bytes("out/\($0)") }
    // A missing result is produced again, and never overwrites another image's result.
    #expect(unlink("\(out)/a.jpg.jpg.jpg") == 0)
    try await batch("\(scratch.url.path)/in", "--out", out, "--preset", "favicon", "--skip-existing")
    #expect(try scratch.files(in: "out").map { try scratch.bytes("out/\($0)") } == all)
  }

  @Test("a file that is no image by its name takes no name from an image")
  func companions() throws {
    for name in ["a.aae", "a.jpg", "a.xmp", "b.jpg", "b.png", "b.xmp", "c.aae", "c.xmp"] {
      try scratch.add("in/\(name)")
    }
    let found = try images(["\(scratch.url.path)/in"])
    #expect(found.map(\.name) == ["a.aae", "a", "a.xmp", "b.jpg", "b.png", "b.xmp", "c.aae", "c.xmp"])
    #expect(found.allSatisfy { $0.problem == nil })
  }

  @Test("a file within max_bytes is passed through, as an image in one message is")
  func maxBytes() async throws {
    var large = ProcessingConfiguration(maxWidth: 400, preferredFormat: .png, allowUpscale: true)
    large.png = PNGOptions(compressionLevel: 0)
    let several = try TestSupport.process(Fixture.bytes("photo.png"), large).bytes
    for (name, bytes) in [("small.jpg", Fixture.bytes("photo-420.jpg")), ("large.png", several)] {
      let file = try scratch.add(name, bytes)
      try await process(file, "--quality", "1", "--max-bytes", "\(bytes.count + 100)")
      #expect(try scratch.bytes("out/\(name)").count == bytes.count, "\(name)")
    }
  }

  @Test("rendition names never collide with those of other images")
  func renditionNames() throws {
    for name in ["a.jpg", "a-b.jpg", "x/c.jpg", "y/c.jpg"] { try scratch.add("in/\(name)") }
    let folder = try images(["\(scratch.url.path)/in"], suffixes: ["-b-c", "-c"])
    // Without their extensions, both would be named a-b-c.
    #expect(folder.map(\.name) == ["a-b.jpg", "a.jpg", "c", "c"] && folder.allSatisfy { $0.problem == nil })
    let named = try images(["x/c.jpg", "y/c.jpg"].map { "\(scratch.url.path)/in/\($0)" })
    // The first result keeps its name, as another extension would not distinguish them.
    #expect(named.map(\.name) == ["c", "c"] && named[0].problem == nil)
    let problem = named[1].problem.map { "\($0)" } ?? ""
    #expect(problem.contains("x/c.jpg"), "\(problem)")
  }

  @Test("a name of 240 bytes works like any other")
  func longNames() async throws {
    let name = String(repeating: "n", count: 240)
    let photo = try scratch.add("in/\(name).jpg", Fixture.bytes("photo-420.jpg"))
    try await process(photo, "--preset", "favicon")
    #expect(try scratch.files(in: "out") == ["\(name).jpg"])
    try await batch(photo, "--out", "\(scratch.url.path)/again", "--preset", "favicon")
    #expect(try scratch.files(in: "again") == ["\(name).jpg"])
  }

  @Test("an output directory that is an input is refused")
  func outputIsInput() async throws {
    try scratch.add("in/a.jpg", Fixture.bytes("photo-420.jpg"))
    for input in ["\(scratch.url.path)/in", "\(scratch.url.path)/in/../in/"] {
      let error = await #expect(throws: ValidationError.self) {
        try await batch(input, "--out", "\(scratch.url.path)/in")
      }
      #expect(error?.message.contains("--out is") == true)
    }
    #expect(try scratch.files(in: "in") == ["a.jpg"])
    // An output directory below an input is skipped, as before.
    try await batch("\(scratch.url.path)/in", "--out", "\(scratch.url.path)/in/out", "--preset", "favicon")
    #expect(try scratch.files(in: "in/out") == ["a.jpg"])
  }

  @Test("links in folders are followed, unless they lead nowhere or in a circle")
  func links() throws {
    for name in ["in/a.jpg", "in/below/b.jpg", "elsewhere/c.jpg"] { try scratch.add(name) }
    let links = [
      "copy.jpg": "a.jpg", "linked": "../elsewhere", "below/up": "..", "self": "self", "nowhere.jpg": "missing.jpg",
    ]
    for (name, target) in links { #expect(symlink(target, "\(scratch.url.path)/in/\(name)") == 0) }
    let folder = BatchInput(path: FilePath("\(scratch.url.path)/in"))
    let found = try BatchInputs.images(in: [folder], output: FilePath(out), suffixes: [""])
    #expect(found.images.map(\.place.string) == ["a", "below/b", "copy", "linked/c"])
    #expect(found.skippedLinkCount == 3)
    // What is named twice, or within a folder that is named, is processed once.
    let again = ["in/below", "in/copy.jpg", "elsewhere/c.jpg"].map { "\(scratch.url.path)/\($0)" }
    #expect(try images([folder.path.string] + again).count == 4)
  }

  @Test("rows of one image are one image only if they request the same")
  func rows() throws {
    let path = FilePath(try scratch.add("a.jpg"))
    let inputs = [40, 50, 40].map { width in
      let configuration = ProcessingConfiguration(maxWidth: width)
      return BatchInput(
        path: path,
        requested: RequestedResults(results: [RequestedResult(id: "", configuration: configuration)]))
    }
    let found = try BatchInputs.images(in: inputs, output: FilePath(out), suffixes: [""]).images
    #expect(found.map(\.requested?.results.first?.configuration.maxWidth) == [40, 50])
    #expect(found.map { $0.problem != nil } == [false, true])
  }

  @Test("a file of presets changes what is sent to workers only for the presets that it defines")
  func remotePresets() throws {
    let file = try scratch.add("presets.yaml", Array("presets: {square: {max_width: 40}, upload: {max_width: 9}}".utf8))
    func requested(_ preset: String) throws -> RequestedResult? {
      let batch = try #require(
        try Batch.parseAsRoot(["in", "--out", out, "--presets", file, "--preset", preset]) as? Batch)
      return try batch.results.requested(PresetSource.catalog(path: file), isRemote: true).results.first
    }
    #expect(
      try requested("favicon")?.preset == "favicon" && requested("favicon")?.overrides == ProcessingConfiguration())
    #expect(try requested("square")?.preset == "" && requested("square")?.overrides.maxWidth == 40)
    #expect(try requested("upload")?.preset == "" && requested("upload")?.overrides.maxWidth == 9)
    #expect(try requested("elsewhere")?.preset == "elsewhere")
    let known = RequestedResults(results: try ["favicon", "square", "elsewhere"].compactMap(requested))
    #expect(known.foreignPresets == ["elsewhere"])
  }

  @Test("a quality that a rule lowered is reported, one that was requested only in JSON")
  func quality() {
    let compressed = ProcessingConfiguration(compressionQuality: 0.8, neverLarger: true)
    #expect(compressed.choosesQuality(0.7) && !compressed.choosesQuality(0.8) && !compressed.choosesQuality(nil))
    #expect(!ProcessingConfiguration(compressionQuality: 0.8).choosesQuality(0.7))
    #expect(ProcessingConfiguration(maxBytes: 1000).choosesQuality(1))
    #expect(ProcessingConfiguration(targetSimilarity: 70).choosesQuality(1))
  }

  @Test("an empty value after an equals sign is a value, up to the end of the options")
  func emptyValues() {
    #expect(
      ImageWorker.arguments(["serve", "--spill-directory=", "--port=1"]) == [
        "serve", "--spill-directory", "", "--port=1",
      ])
    #expect(
      ImageWorker.arguments(["process", "--filter=a=", "-=", "--", "--a="]) == [
        "process", "--filter=a=", "-=", "--", "--a=",
      ])
    #expect(ImageWorker.arguments(["--title=\u{301}a=b", "--a=\u{e9}"]) == ["--title", "\u{301}a=b", "--a=\u{e9}"])
  }

  @Test("a failed result leaves no file")
  func nothingLeft() async throws {
    let cut = try scratch.add("cut.jpg", Array(Fixture.bytes("photo-420.jpg").prefix(3000)))
    await #expect(throws: ExitCode.self) { try await process(cut) }
    #expect(try scratch.files(in: "out").isEmpty)
  }
}

extension ScratchFolder {
  /// Writes a file, creates its parent folders, and returns its path.
  @discardableResult
  func add(_ name: String, _ bytes: [UInt8] = []) throws -> String {
    let folder = url.appendingPathComponent(name).deletingLastPathComponent()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return try write(bytes, to: name)
  }

  /// Returns the names of all files in a subfolder, including hidden ones other than the folder of a batch's journal.
  func files(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path(folder)).filter { $0 != BatchJournal.folder }.sorted()
  }
}
