import CoreMetrics
import Logging
import NIOCore
import Testing

@testable import WorkerOperations
@testable import WorkerTelemetry

/// Tests clients that cancel many calls, for which they write HTTP/2 frames directly.
@Suite("Cancelled calls", .timeLimit(.minutes(15)))
struct CancelledCallTests {
  /// Limits of few cancelled calls, of which some tests need many.
  private static func resetLimits(_ maxResets: Int = 100, minCallTime: Duration = .seconds(600)) -> ConnectionLimits {
    var limits = ConnectionLimits(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    limits.maxResets = maxResets
    limits.minCallTime = minCallTime
    return limits
  }

  @Test("cancelled calls do not affect their connection")
  func resets() async throws {
    try await serveHealth(Self.resetLimits(1000)) { server in
      let connection = try RawConnection(port: server.port)
      let watch = try connection.open(RawConnection.watchRequest)
      for _ in 0..<900 {
        let stream = try connection.open(RawConnection.watchRequest)
        try connection.reset(stream)
        // Frames that were already on their way.
        try connection.send(.windowUpdate, stream: stream, [0, 0, 1, 0])
        try connection.send(.data, stream: stream, [0, 0, 0])
      }
      #expect(try connection.answer(try connection.open()).status == 0)
      #expect(connection.goAways.isEmpty && connection.answers[watch]?.reset == nil)
    }
  }

  @Test("calls that were open for a while may be cancelled by all their clients at once")
  func lateResets() async throws {
    try await serveHealth(Self.resetLimits(minCallTime: .zero)) { server in
      let connection = try RawConnection(port: server.port)
      for _ in 0..<2500 { try connection.reset(try connection.open(RawConnection.watchRequest)) }
      #expect(try connection.answer(try connection.open()).status == 0)
      #expect(connection.goAways.isEmpty)
    }
  }

  @Test("more calls than may be cancelled early are refused, and the connection stays")
  func earlyResets() async throws {
    let registry = MetricRegistry()
    var limits = Self.resetLimits()
    limits.callLog = CallLog(metrics: registry, logger: limits.logger, methods: ["grpc.health.v1.Health/Watch"])
    try await serveHealth(limits) { server in
      let connection = try RawConnection(port: server.port)
      let watch = try connection.open(RawConnection.watchRequest)
      for _ in 0..<500 { try connection.reset(try connection.open(RawConnection.watchRequest)) }
      let refused = try connection.answer(try connection.open())
      #expect(refused.status == 8 && refused.headers["grpc-message"]?.contains("were cancelled") == true)
      #expect(connection.goAways.isEmpty && connection.answers[watch]?.status == nil)
      #expect(connection.answers[watch]?.reset == nil)
      // Another connection has an allowance of its own.
      let other = try RawConnection(port: server.port)
      #expect(try other.answer(try other.open()).status == 0)
    }
    let calls = registry.callCounts
    // Those that were begun; the allowance grows by ten each second.
    #expect(calls["grpc.health.v1.Health/Watch CANCELLED", default: 0] < 400, "\(calls)")
    #expect(calls["grpc.health.v1.Health/Watch RESOURCE_EXHAUSTED", default: 0] > 0, "\(calls)")
  }

  @Test("a flood of cancelled calls closes the connection")
  func resetFlood() async throws {
    try await serveHealth(Self.resetLimits()) { server in
      let connection = try RawConnection(port: server.port)
      for _ in 0..<3000 {
        guard let stream = try? connection.open(), (try? connection.reset(stream)) != nil else { break }
      }
      connection.waitForEnd()
      #expect(connection.goAways.map(\.code) == [11] && connection.goAways.first?.reason == "too_many_resets")
    }
  }
}
