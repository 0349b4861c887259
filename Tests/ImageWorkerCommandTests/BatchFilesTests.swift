import ArgumentParser
import Foundation
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

/// Files of a batch in directories that others can write to.
@Suite("Files of a batch", .timeLimit(.minutes(15)))
struct BatchFilesTests {
  private let scratch: ScratchFolder

  init() throws { scratch = try ScratchFolder() }

  private var out: FilePath { FilePath(scratch.path("out")) }
  private var journalPath: String { scratch.path("out/.image-worker/journal.jsonl") }

  private func open() throws -> BatchJournal { try BatchJournal(directory: out, for: .run(isFresh: false)) }

  @Test(
    "a journal that is no regular file is refused at once", arguments: ["/dev/zero", "fifo", "elsewhere", "folder"])
  func special(kind: String) throws {
    let victim = try scratch.write([1, 2, 3], to: "victim")
    if kind == "folder" {
      try scratch.add("out/x")
      try FileManager.default.createDirectory(atPath: scratch.path("other"), withIntermediateDirectories: true)
      #expect(symlink(scratch.path("other"), scratch.path("out/.image-worker")) == 0)
    } else {
      try scratch.add("out/.image-worker/x")
      switch kind {
      case "fifo": #expect(mkfifo(journalPath, 0o600) == 0)
      case "elsewhere": #expect(symlink(victim, journalPath) == 0)
      default: #expect(symlink(kind, journalPath) == 0)
      }
    }
    let error = #expect(throws: FileError.self) { try open() }
    #expect(error?.description.contains("cannot be used: it is a link or not a regular file") == true)
    #expect(try scratch.bytes("victim") == [1, 2, 3])
  }

  @Test("images whose names only look the same have records of their own")
  func similarNames() throws {
    try scratch.add("out/x")
    let photos = try ["é", "e\u{301}"].map { name in
      BatchImage(path: FilePath(try scratch.add("\(name).jpg", [1])), folder: "", name: name, isFound: false)
    }
    for photo in photos {
      #expect(try open().record(of: photo, request: "r") == nil)
      let version = try #require(FileSystem.version(of: photo.path))
      try open().add(photo, version, request: "r", .done, outputs: [])
    }
    for photo in photos {
      let place = try #require(try open().record(of: photo, request: "r")?.place)
      #expect(Array(place.utf8) == Array(photo.name.utf8))
    }
  }

  @Test("a line of the journal without end is passed over, and the lines around it are read")
  func longLine() throws {
    try scratch.add("out/.image-worker/x")
    let photo = BatchImage(path: FilePath(try scratch.add("a.jpg", [1])), folder: "", name: "a", isFound: false)
    do {
      let version = try #require(FileSystem.version(of: photo.path))
      try open().add(photo, version, request: "r", .done, outputs: [])
    }
    let record = try scratch.bytes("out/.image-worker/journal.jsonl")
    // As a run that was killed leaves it, and then as nothing does.
    let long = [UInt8](repeating: UInt8(ascii: "x"), count: 8 << 20)
    for (bytes, isKnown) in [(record, true), (long + [10] + record, true), (record + long, true), (long, false)] {
      _ = try scratch.write(bytes, to: "out/.image-worker/journal.jsonl")
      #expect(try (open().record(of: photo, request: "r") != nil) == isKnown)
      #expect(try scratch.bytes("out/.image-worker/journal.jsonl").last == 10)
    }
  }

  @Test("lines are read whole up to their maximum size", arguments: [1, 5, 1 << 16, 3 << 16])
  func readLines(maxByteCount: Int) throws {
    let lengths = [0, 1, 4, 5, 6, 0, 1 << 16, (1 << 16) + 1, 3 << 16, 7]
    let lines = lengths.map { [UInt8](repeating: 65, count: $0) }
    let path = try scratch.write(lines.flatMap { $0 + [10] }, to: "lines")
    for (isComplete, rest) in [(true, []), (false, [UInt8(66)])] {
      _ = try scratch.write(lines.flatMap { $0 + [10] } + rest, to: "lines")
      let file = try FileDescriptor.open(path, .readOnly)
      var read: [[UInt8]] = []
      #expect(try FileSystem.readLines(of: file, maxByteCount: maxByteCount) { read.append($0) } == isComplete)
      try file.close()
      #expect(read == lines.filter { $0.count <= maxByteCount })
    }
  }

  @Test("a partial file has a name of its own that was not there before")
  func partialFiles() throws {
    try scratch.add("out/x")
    let files = try (0..<100).map { _ in try PartialFile(out.appending("a.jpg")) }
    let names = try scratch.files(in: "out").filter { $0.hasSuffix(".part") }
    #expect(names.count == 100)
    // Not one that counts up, which somebody could have taken before.
    #expect(Set(names.map { $0.split(separator: ".")[2].count }).isSubset(of: 8...16))
    withExtendedLifetime(files) {}
    let own = try #require(names.first)
    #expect(own.hasPrefix(".image-worker.\(getpid())."))
  }

  @Test("what a killed process left is removed, but no file that another process or container is writing")
  func leftovers() throws {
    let names = ["1.a", "\(getpid()).b", "\(Int32.max).c"].map { "out/.image-worker.\($0).part" }
    for name in names + ["out/image.part"] { _ = try scratch.add(name) }
    // A process of another container may have any number.
    let writing = try FileDescriptor.open(FilePath(scratch.path(names[2])), .writeOnly)
    #expect(flock(writing.rawValue, LOCK_EX) == 0)
    let file = try PartialFile(out.appending("a.jpg"))
    PartialFile.removeLeftovers(in: out)
    #expect(try scratch.files(in: "out").count == 3)
    try writing.close()
    try file.complete(isDurable: false)
    PartialFile.removeLeftovers(in: out)
    #expect(try scratch.files(in: "out") == ["a.jpg", "image.part"])
  }

  @Test("a partial file is none that somebody has put there, nor behind a link")
  func plantedPartialFile() throws {
    try scratch.add("out/x")
    let victim = try scratch.write([1, 2, 3], to: "victim")
    let names = (1...2).map { "out/.image-worker.\(getpid()).\($0).part" }
    _ = try scratch.write([4], to: names[0])
    #expect(symlink(victim, scratch.path(names[1])) == 0)
    for number in 1...2 as ClosedRange<UInt64> {
      #expect(throws: FileError.self) { try PartialFile(out.appending("a.jpg"), number: number) }
    }
    #expect(try scratch.bytes("victim") == [1, 2, 3] && scratch.bytes(names[0]) == [4])
  }

  @Test("a record of a manifest that is too long is an error of its line")
  func longRecords() {
    let long = String(repeating: "x", count: 2 << 20)
    for (text, line) in [
      ("{\"path\": \"a\"}\n{\"path\": \"\(long)\"}\n", 2), ("path,output\na,\(long)\n", 2),
      ("path,output\na,b\nc,\"\(long)", 3),
    ] {
      let error = #expect(throws: ManifestError.self) { try BatchManifest.rows(of: Data(text.utf8), name: "list") }
      #expect(error?.line == line && error?.message.contains("longer than 1048576 bytes") == true)
    }
  }

  @Test("a list without end is an error")
  func endless() throws {
    let error = #expect(throws: FileError.self) { try BatchInputs.entries(of: "/dev/zero", endsWithNull: true) }
    #expect(error?.description == "--list /dev/zero cannot be read: it has more than 512 MiB; split it")
  }
}
