import Foundation
import TestSupport
import Testing

/// The built program, run as a user runs it.
enum WorkerProgram {
  /// The outcome of one run.
  struct Outcome: Sendable {
    let status: Int32
    /// Standard output.
    let outputBytes: [UInt8]
    /// Standard error.
    let errors: String

    /// Standard output as text.
    var output: String { String(decoding: outputBytes, as: UTF8.self) }
  }

  /// Runs the program until it exits; terminates it when the test is cancelled.
  /// - `input`: standard input, as a pipe with less than the 64 KiB that one takes.
  /// - `outputPath`: where standard output goes, if it is not returned.
  static func run(_ arguments: [String], input: [UInt8]? = nil, outputPath: String? = nil) async throws -> Outcome {
    let scratch = try ScratchFolder()
    let (output, errors) = (try scratch.file("output"), try scratch.file("errors"))
    let process = Foundation.Process()
    process.executableURL = TestProgram.url
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    if let input {
      let pipe = Pipe()
      try pipe.fileHandleForWriting.write(contentsOf: Data(input))
      try pipe.fileHandleForWriting.close()
      process.standardInput = pipe
    }
    process.standardOutput = try outputPath.map { try #require(FileHandle(forWritingAtPath: $0)) } ?? output
    process.standardError = errors
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        process.terminationHandler = { _ in continuation.resume() }
        do { try process.run() } catch {
          process.terminationHandler = nil
          continuation.resume(throwing: error)
        }
      }
    } onCancel: {
      if process.isRunning { process.terminate() }
    }
    return Outcome(
      status: process.terminationStatus, outputBytes: try scratch.bytes("output"), errors: try scratch.text("errors"))
  }
}

/// A folder for one test, deleted when the test releases it.
final class ScratchFolder: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("image-worker-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func path(_ name: String) -> String { url.appendingPathComponent(name).path }

  /// Creates a file and opens it for writing.
  func file(_ name: String) throws -> FileHandle {
    try Data().write(to: url.appendingPathComponent(name))
    return try FileHandle(forWritingTo: url.appendingPathComponent(name))
  }

  func write(_ bytes: some Sequence<UInt8>, to name: String) throws -> String {
    try Data(bytes).write(to: url.appendingPathComponent(name))
    return path(name)
  }

  func bytes(_ name: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: url.appendingPathComponent(name))) }

  func text(_ name: String) throws -> String {
    try #require(String(bytes: try bytes(name), encoding: .utf8), "\(name) is not text in UTF-8")
  }

  /// The names of the folder's entries, sorted.
  var names: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: url.path).sorted() }
  }
}
