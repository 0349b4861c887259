import Dispatch
import Foundation
import Logging
import Synchronization
import Testing
import Tracing
import WorkerProtocol

@testable import WorkerTelemetry

@Suite("Logging")
struct LoggingTests {
  private final class Lines: Sendable {
    private let text = Mutex("")
    var all: String { text.withLock { $0 } }
    func take(_ line: String) { text.withLock { $0 += line } }
  }

  private func logger(_ format: LogFormat, _ lines: Lines, export: LogExport? = nil) -> Logger {
    Logger(label: "a \"logger\"") { WorkerLogHandler(label: $0, format: format, export: export, write: lines.take) }
  }

  private var traced: ServiceContext {
    var context = ServiceContext.topLevel
    context.spanContext = SpanContext(traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    return context
  }

  @Test("writes one JSON object per line for any content")
  func json() throws {
    let lines = Lines()
    var logger = logger(.json, lines)
    logger[metadataKey: "m"] = "of the logger"
    let nasty = "line\nbreak \"quote\" \\ \u{1} \u{1f600} \u{7f}"
    ServiceContext.$current.withValue(traced) {
      logger.warning(
        "\(nasty)",
        metadata: [
          "m": "given", "n": .stringConvertible(1.5), "level": "mine", "a": ["x", ["y": "z"]], "\"": "q",
        ])
    }
    logger.debug("below the level")
    let text = lines.all
    #expect(text.hasSuffix("\n") && text.dropLast().allSatisfy { $0 != "\n" })
    let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    #expect(object["message"] as? String == nasty && object["level"] as? String == "warning")
    #expect(object["logger"] as? String == "a \"logger\"" && object["metadata.level"] as? String == "mine")
    #expect(object["m"] as? String == "given" && object["n"] as? Double == 1.5 && object["\""] as? String == "q")
    #expect((object["a"] as? [Any])?.count == 2)
    #expect(object["trace_id"] as? String == "4bf92f3577b34da6a3ce929d0e0e4736")
    #expect(object["span_id"] as? String == "00f067aa0ba902b7")
    let time = try #require(object["time"] as? String)
    #expect(time.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil)
  }

  @Test("writes one line for a person, without control characters")
  func text() {
    let lines = Lines()
    logger(.text, lines).info("a\nb\u{1b}[31m", metadata: ["z": "two words", "y": "1"])
    let line = lines.all
    #expect(line.contains("INFO    a\\nb\\u{1b}[31m y=1 z=\"two words\"\n"))
    #expect(!line.contains("trace_id"))
  }

  @Test("exports each line to the collector too, with its severity and its span")
  func export() throws {
    let taken = Mutex<[LogLine]>([])
    let logger = logger(.text, Lines(), export: LogExport { line in taken.withLock { $0.append(line) } })
    ServiceContext.$current.withValue(traced) { logger.error("e", metadata: ["n": .stringConvertible(3)]) }
    logger.notice("n")
    let request = OTLPLogsRequest(taken.withLock { $0 }, resource: OTLPResource([]))
    let records = try #require(request.resourceLogs.first?.scopeLogs.first?.logRecords)
    try #require(records.count == 2)
    #expect(records.map(\.severityNumber) == [.error, .info2] && records.map(\.body.stringValue) == ["e", "n"])
    #expect(records[0].attributes.first?.value.intValue == 3 && records[0].traceID.count == 16)
    #expect(records[0].spanID.count == 8 && records[0].flags == 1 && records[1].traceID.isEmpty)
    #expect(records.allSatisfy { $0.timeUnixNano > 1_600_000_000_000_000_000 })
  }

  @Test(
    "waits for nobody who reads it, and tells of the lines that it dropped in their place", .timeLimit(.minutes(15)))
  func stalled() async throws {
    let pipe = Pipe()
    let writer = LogWriter(file: pipe.fileHandleForWriting.fileDescriptor, capacity: 100_000)
    let logger = Logger(label: "test") { label in
      WorkerLogHandler(label: label, format: .json, write: { writer.write($0, format: .json) })
    }
    let count = 5000
    for number in 0..<count { logger.info("numbered", metadata: ["number": .stringConvertible(number)]) }
    writer.flush(timeout: .zero)
    let reader = PipeReader(pipe)
    writer.flush()
    logger.info("numbered", metadata: ["number": .stringConvertible(count)])
    writer.flush()
    try pipe.fileHandleForWriting.close()
    var next = 0
    var dropped = 0
    for line in await reader.all.split(separator: UInt8(ascii: "\n")) {
      let object = try #require(try JSONSerialization.jsonObject(with: line) as? [String: Any])
      if let number = object["number"] as? Int {
        #expect(number == next)
        next = number + 1
      } else {
        let more = try #require(object["dropped"] as? Int)
        #expect(more > 0 && object["level"] as? String == "warning")
        next += more
        dropped += more
      }
    }
    #expect(next == count + 1 && dropped > 1000 && dropped < count)
  }

  @Test("loses nothing that is flushed, and keeps the order of each thread's lines", .timeLimit(.minutes(15)))
  func flushed() async throws {
    let pipe = Pipe()
    let writer = LogWriter(file: pipe.fileHandleForWriting.fileDescriptor)
    let reader = PipeReader(pipe)
    await withDiscardingTaskGroup { group in
      for name in ["a", "b", "c"] {
        group.addTask { for number in 0..<3000 { writer.write("\(name) \(number)\n", format: .text) } }
      }
    }
    writer.flush()
    try pipe.fileHandleForWriting.close()
    let lines = String(decoding: await reader.all, as: UTF8.self).split(separator: "\n")
    for name in ["a", "b", "c"] {
      #expect(lines.filter { $0.hasPrefix(name) } == (0..<3000).map { "\(name) \($0)" })
    }
  }
}

/// Reads a pipe to its end on its own thread.
private final class PipeReader: Sendable {
  private let queue = DispatchQueue(label: "reader")
  private let bytes = Mutex(Data())

  init(_ pipe: Pipe) {
    let file = pipe.fileHandleForReading
    queue.async { [self] in
      let all = file.readDataToEndOfFile()
      bytes.withLock { $0 = all }
    }
  }

  /// All bytes, after waiting for the end of the pipe.
  var all: Data {
    get async {
      await withCheckedContinuation { continuation in
        queue.async { [self] in continuation.resume(returning: bytes.withLock { $0 }) }
      }
    }
  }
}
