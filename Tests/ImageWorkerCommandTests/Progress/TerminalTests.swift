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

/// The commands on a terminal.
@Suite("Commands on a terminal", .timeLimit(.minutes(15)))
struct TerminalTests {
  struct Case: Sendable {
    var json = false
    var quiet = false
    var showsDetails = false
    var imageCount = 300
    var output: StreamKind
    var errors: StreamKind
    var results: ReportStyle.Results
    var showsProgress: Bool
  }

  @Test(
    "progress is shown where nothing else writes to the terminal",
    arguments: [
      Case(output: .terminal, errors: .terminal, results: .none, showsProgress: true),
      Case(output: .file, errors: .terminal, results: .lines, showsProgress: true),
      Case(output: .pipe, errors: .terminal, results: .lines, showsProgress: false),
      Case(output: .terminal, errors: .file, results: .lines, showsProgress: false),
      Case(output: .pipe, errors: .pipe, results: .lines, showsProgress: false),
      Case(json: true, output: .terminal, errors: .terminal, results: .json, showsProgress: false),
      Case(json: true, output: .file, errors: .terminal, results: .json, showsProgress: true),
      Case(quiet: true, output: .terminal, errors: .terminal, results: .lines, showsProgress: false),
      Case(showsDetails: true, output: .terminal, errors: .terminal, results: .lines, showsProgress: false),
      Case(imageCount: 1, output: .terminal, errors: .terminal, results: .lines, showsProgress: false),
    ])
  func style(_ given: Case) {
    let style = ReportStyle(
      json: given.json, quiet: given.quiet, showsDetails: given.showsDetails, imageCount: given.imageCount,
      output: given.output, errors: given.errors)
    #expect(style.results == given.results && style.showsProgress == given.showsProgress)
  }

  @Test("NO_COLOR and a dumb terminal turn colors off")
  func color() {
    #expect(Terminal.usesColor(["TERM": "xterm"]) && Terminal.usesColor(["TERM": "xterm", "NO_COLOR": ""]))
    #expect(!Terminal.usesColor(["TERM": "xterm", "NO_COLOR": "1"]))
    #expect(!Terminal.usesColor(["TERM": "dumb"]) && !Terminal.usesColor([:]))
  }

  @Test("a batch shows one line as wide as the terminal, then failures and the summary", arguments: [80, 200])
  func batch(columnCount: Int) async throws {
    let scratch = try ScratchFolder()
    for name in ["a.jpg", "b.jpg", "c.jpg"] { try scratch.add("in/\(name)", Fixture.bytes("photo-420.jpg")) }
    let cut = try scratch.add("in/cut.jpg", Array(Fixture.bytes("photo-420.jpg").prefix(3000)))
    let arguments = ["batch", scratch.path("in"), "--preset", "favicon", "--out", scratch.path("out")]
    let plain = try await run(arguments, columnCount: columnCount, environment: ["TERM": "xterm", "NO_COLOR": "1"])
    #expect(plain.status == 1 && !plain.text.contains("\u{1b}"))
    let pieces = plain.text.split(separator: "\r").map(String.init)
    let drawn = pieces.filter { $0.contains("/4  ") }
    #expect(!drawn.isEmpty && drawn.allSatisfy { $0.count == columnCount - 1 && $0.hasPrefix("[") }, "\(drawn)")
    #expect(!plain.text.contains(scratch.path("in/a.jpg")))
    // The line is cleared before anything follows it.
    let rest = try #require(plain.text.firstRange(of: "1 failed:\r\n  \(cut):"))
    #expect(plain.text[..<rest.lowerBound].hasSuffix(String(repeating: " ", count: columnCount - 1) + "\r"))
    #expect(plain.text[rest.upperBound...].contains("TRUNCATED_IMAGE"))
    #expect(plain.text.contains("4 images in ") && plain.text.contains(": 3 done, 1 failed\r\n"))
    let colored = try await run(arguments, columnCount: columnCount, environment: ["TERM": "xterm"])
    #expect(colored.text.contains("\u{1b}[32m["))
  }

  /// Runs the program with both output streams on a terminal of its own.
  private func run(
    _ arguments: [String], columnCount: Int, environment: [String: String]
  ) async throws -> (status: Int32, text: String) {
    var (terminalEnd, programEnd): (Int32, Int32) = (-1, -1)
    var size = winsize(ws_row: 50, ws_col: UInt16(columnCount), ws_xpixel: 0, ws_ypixel: 0)
    try #require(openpty(&terminalEnd, &programEnd, nil, nil, &size) == 0)
    let (terminal, line) = (FileDescriptor(rawValue: terminalEnd), FileDescriptor(rawValue: programEnd))
    defer { try? terminal.close() }
    let process = Foundation.Process()
    process.executableURL = TestProgram.url
    process.arguments = arguments
    process.environment = environment
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle(fileDescriptor: line.rawValue)
    process.standardError = FileHandle(fileDescriptor: line.rawValue)
    do { try process.run() } catch {
      try line.close()
      throw error
    }
    try line.close()
    // Reading fails when the program has closed the other end.
    let bytes = await withCheckedContinuation { (continuation: CheckedContinuation<[UInt8], Never>) in
      DispatchQueue.global().async {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 4096)
        while let count = try? part.withUnsafeMutableBytes({ try terminal.read(into: $0) }), count > 0 {
          bytes += part[..<count]
        }
        continuation.resume(returning: bytes)
      }
    }
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: bytes, as: UTF8.self))
  }
}
