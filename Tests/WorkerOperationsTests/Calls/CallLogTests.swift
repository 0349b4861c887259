import CoreMetrics
import Foundation
import Logging
import NIOCore
import Synchronization
import Testing

@testable import WorkerOperations
@testable import WorkerTelemetry

@Suite("CallLog", .timeLimit(.minutes(15)))
struct CallLogTests {
  private static let health = "grpc.health.v1.Health"
  /// How often each method is called, with the status code that its client gets.
  private static let expected = [
    "\(health)/Check OK": 2, "\(health)/Check NOT_FOUND": 1, "\(health)/List RESOURCE_EXHAUSTED": 1,
    "\(health)/Check INVALID_ARGUMENT": 1, "_OTHER UNIMPLEMENTED": 2, "\(health)/Check FAILED_PRECONDITION": 1,
    "\(health)/Watch DEADLINE_EXCEEDED": 1, "\(health)/Watch CANCELLED": 2,
  ]

  @Test("a delay has at most as many nanoseconds as a number can be large")
  func longDelay() {
    #expect(Duration.seconds(1 << 40).wholeNanoseconds == .max)
    #expect(Duration.seconds(-1 << 40).wholeNanoseconds == .min)
    #expect(Duration.milliseconds(1500).wholeNanoseconds == 1_500_000_000)
  }

  /// Calls `List` are refused at their headers.
  private func limits(_ registry: MetricRegistry, _ logger: Logger) -> ConnectionLimits {
    var limits = ConnectionLimits(logger: logger)
    limits.maxMessageByteCount = 1 << 20
    limits.calls = CallAdmission { call in
      call.path.hasSuffix("/List") ? .refused("too much to do", retryDelay: nil) : .admitted(until: nil)
    }
    let methods = Set(["Check", "List", "Watch"].map { "\(Self.health)/\($0)" })
    limits.callLog = CallLog(metrics: registry, logger: logger, methods: methods)
    return limits
  }

  private static func request(_ path: String) -> [(String, String)] {
    RawConnection.okRequest.map { $0.0 == ":path" ? ($0.0, path) : $0 }
  }

  /// Makes the expected calls.
  private static func call(port: Int) throws {
    let connection = try RawConnection(port: port)
    func status(_ fields: [(String, String)], message: [UInt8] = RawConnection.emptyMessage) throws -> Int? {
      try connection.answer(try connection.open(fields, message: message)).status
    }
    let ok = RawConnection.okRequest
    let statuses = [
      try status(ok), try status(ok, message: [0, 0, 0, 0, 3, 10, 1, 120]), try status(request("/\(health)/List")),
      try status(ok + [("grpc-timeout", "-1S")]), try status(ok + [("image-worker-call", "1")]),
      try status(request("/\(health)/None")), try status(request("/no.such.Service/Method")),
      try status(RawConnection.watchRequest + [("grpc-timeout", "100m")]),
    ]
    #expect(statuses == [0, 5, 8, 3, 0, 12, 12, 4])
    // Refused after its handler has begun.
    let large = try connection.open(message: [0, 0, 32, 0, 0], ends: false)
    #expect(try connection.answer(large).status == 9)
    let watch = try connection.open(RawConnection.watchRequest)
    try connection.wait { connection.answers[watch] != nil }
    try connection.reset(watch)
    try connection.settle()
    // One whose connection ends.
    let lost = try RawConnection(port: port)
    let call = try lost.open(RawConnection.watchRequest)
    try lost.wait { lost.answers[call] != nil }
  }

  @Test("each call is counted once, whoever ends it, and logged alike")
  func calls() async throws {
    let lines = Mutex<[LogLine]>([])
    var logger = Logger(label: "test") { label in
      WorkerLogHandler(
        label: label, format: .text, export: LogExport { line in lines.withLock { $0.append(line) } }, write: { _ in })
    }
    logger.logLevel = .debug
    let registry = MetricRegistry()
    try await serveHealth(limits(registry, logger)) { server in
      try Self.call(port: server.port)
      // The drain would end the call of the lost connection with OK, as long as the server has not noticed its end.
      for _ in 0..<1000 where registry.callCounts != Self.expected { Thread.sleep(forTimeInterval: 0.01) }
    }
    #expect(registry.callCounts == Self.expected)
    let calls = lines.withLock { $0 }.filter { $0.message == "call" }.map { line in
      Dictionary(uniqueKeysWithValues: line.metadata.map { ($0.key, "\($0.value)") })
    }
    #expect(calls.count == Self.expected.values.reduce(0, +))
    #expect(calls.allSatisfy { $0["peer"]?.hasPrefix("ipv4:127.0.0.1:") == true && $0["duration_ms"] != nil })
    let refused = try #require(calls.first { $0["code"] == "RESOURCE_EXHAUSTED" })
    #expect(refused["reason"] == "OVERLOADED" && refused["error"] == "too much to do")
    let large = try #require(calls.first { $0["code"] == "FAILED_PRECONDITION" })
    #expect(large["reason"] == "LIMIT_EXCEEDED" && large["limit"] == "1048576")
  }
}

extension MetricRegistry {
  /// The number of calls that were measured, by method and status code.
  var callCounts: [String: Int] {
    let family = collect().first { $0.description.name == "rpc.server.call.duration" }
    return (family?.series ?? []).reduce(into: [:]) { counts, series in
      guard case .histogram(let value) = series.value else { return }
      let names = Dictionary(uniqueKeysWithValues: series.dimensions.map { ($0.name, $0.value) })
      counts["\(names["rpc.method"] ?? "") \(names["rpc.response.status_code"] ?? "")"] = Int(value.count)
    }
  }
}
