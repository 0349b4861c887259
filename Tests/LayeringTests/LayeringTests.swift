import Foundation
import Testing

/// Each room imports only what the design allows it.
@Suite("Layering")
struct LayeringTests {
  /// The rooms of this package that a room may import.
  static let rooms: [String: Set<String>] = [
    "image-worker": [
      "WorkerService", "WorkerOperations", "WorkerTelemetry", "WorkerProtocol", "ResultCache", "ImagePipeline",
      "ImageCodecs", "WorkThreads",
    ],
    "WorkerService": ["WorkerProtocol", "ProtobufWire", "ResultCache", "ImagePipeline", "WorkThreads"],
    "WorkerOperations": ["WorkerProtocol"],
    "WorkerTelemetry": ["WorkerProtocol", "ProtobufWire"],
    "ProtobufWire": [],
    "WorkerProtocol": [],
    "ResultCache": [],
    "ImagePipeline": ["ImageCodecs", "ImageKernels", "WorkThreads"],
    "ImageKernels": ["ImageCodecs", "CPixels"],
    "ImageCodecs": ["CCodecs"],
    "WorkThreads": [],
  ]

  /// Modules of other packages and of the system that a room may import; rooms that are not named may import any.
  static let foreign: [String: Set<String>] = [
    "ImagePipeline": ["ServiceContextModule", "Tracing", "Synchronization", "Glibc", "Musl", "Darwin"],
    "ImageKernels": [],
    "ImageCodecs": [],
    "ProtobufWire": [],
    "WorkThreads": ["Synchronization", "Glibc", "Musl", "Darwin"],
    "ResultCache": ["Crypto", "Logging", "SystemPackage", "Synchronization", "Glibc", "Musl", "Darwin"],
  ]

  private static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  @Test("imports follow the plan of the house", arguments: rooms.keys.sorted())
  func imports(room: String) throws {
    let allowed = try #require(Self.rooms[room])
    let folder = Self.root.appendingPathComponent("Sources/\(room)")
    let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
    var checked = 0
    for case let file as URL in try #require(files) where file.pathExtension == "swift" {
      checked += 1
      for module in try Self.modules(in: file) {
        let isRoom = Self.rooms[module] != nil || ["CCodecs", "CPixels"].contains(module)
        let isAllowed = isRoom ? allowed.contains(module) : Self.foreign[room]?.contains(module) ?? true
        #expect(isAllowed, "\(room)/\(file.lastPathComponent) imports \(module)")
      }
    }
    #expect(checked > 0)
  }

  @Test("the C rooms include nothing of each other, and CPixels no library")
  func includes() throws {
    for (room, forbidden) in [("CPixels", ["ccodecs", "jpeglib", "png.h", "webp"]), ("CCodecs", ["cpixels"])] {
      let folder = Self.root.appendingPathComponent("Sources/\(room)")
      let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
      for case let file as URL in try #require(files) where ["c", "h"].contains(file.pathExtension) {
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        for line in lines where line.hasPrefix("#include") {
          #expect(!forbidden.contains { line.contains($0) }, "\(room)/\(file.lastPathComponent): \(line)")
        }
      }
    }
  }

  @Test("the pipeline has no unsafe code, and the compiler checks that it says so")
  func safety() throws {
    let manifest = try String(contentsOf: Self.root.appendingPathComponent("Package.swift"), encoding: .utf8)
    let target = try #require(manifest.split(separator: "name: \"ImagePipeline\",").dropFirst().first)
    let settings = try #require(target.split(separator: ".target(").first)
    #expect(settings.contains(".strictMemorySafety()"))
    let folder = Self.root.appendingPathComponent("Sources/ImagePipeline")
    let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
    for case let file as URL in try #require(files) where file.pathExtension == "swift" {
      let text = try String(contentsOf: file, encoding: .utf8)
      // In any case: a marker, a pointer's type, a function that lends one.
      #expect(text.range(of: "unsafe", options: .caseInsensitive) == nil, "\(file.lastPathComponent)")
      #expect(!text.contains("OpaquePointer") && !text.contains("Unmanaged"), "\(file.lastPathComponent)")
    }
  }

  private static func modules(in file: URL) throws -> [String] {
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    return lines.compactMap { line in
      let words = line.split(separator: " ")
      guard let index = words.firstIndex(of: "import"), index <= 2, !line.contains("//") else { return nil }
      let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
      let name = words.dropFirst(index + 1).first { !kinds.contains($0) }
      return name.flatMap { $0.split(separator: ".").first.map(String.init) }
    }
  }
}
