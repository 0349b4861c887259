import NIOCore
import Testing

@testable import WorkerOperations

@Suite("ConnectionWatch")
struct ConnectionWatchTests {
  private typealias Seen = ConnectionWatch.Observation
  private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

  @Test(
    "a peer is an address of IPv4, or a network of IPv6",
    arguments: [
      ("192.0.2.7", "192.0.2.7"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2"), ("2001:db8::1", "2001:db8:0:0"),
      ("2001:db8:0:5::1", "2001:db8:0:5"), ("::1", "0:0:0:0"), ("::ffff:192.0.2.7", "192.0.2.7"),
      ("1::3:4:5:6:7", "1:0:0:3"),
    ])
  func peer(address: String, name: String) throws {
    #expect(ConnectionTimer.peer(try SocketAddress(ipAddress: address, port: 1)) == name)
  }

  /// Checks a connection at each of these seconds and returns the actions other than `.none`, with their seconds.
  private func actions(
    _ limits: TimeLimits = TimeLimits(), jitter: Double = 0, until end: Int64 = 8000, _ seen: (Int64) -> Seen
  ) -> [String] {
    var watch = ConnectionWatch(limits: limits, now: Self.start, jitter: jitter)
    var actions: [String] = []
    for second in 1...end {
      switch watch.check(seen(second), at: Self.start + .seconds(second)) {
      case .none: continue
      case .ping: actions.append("\(second) ping")
      case .drain(let message): actions.append("\(second) drain: \(message)")
      case .cut(let reason):
        actions.append("\(second) cut: \(reason)")
        return actions
      }
    }
    return actions
  }

  @Test("a connection that never speaks HTTP/2 is closed")
  func handshake() {
    #expect(actions { _ in Seen(hasHandshaken: false) } == ["10 cut: handshake_timeout"])
    #expect(actions(until: 100) { Seen(hasHandshaken: $0 > 9) } == [])
  }

  @Test("an idle connection is drained, one with calls is not")
  func idle() {
    let idle = "the connection was idle"
    #expect(actions(until: 600) { _ in Seen(hasReceived: true) } == ["300 drain: \(idle)"])
    #expect(actions(until: 600) { Seen(hasReceived: true, callCount: $0 == 200 ? 1 : 0) } == ["500 drain: \(idle)"])
    #expect(actions(until: 600) { _ in Seen(hasReceived: true, callCount: 1) } == [])
  }

  @Test("a silent client with calls is pinged, and its connection closed without an answer")
  func keepalive() {
    #expect(actions(until: 300) { _ in Seen(callCount: 1) } == ["60 ping", "80 cut: keepalive_timeout"])
    #expect(
      actions(until: 150) { Seen(hasReceived: $0 == 61 || $0 == 122, callCount: 1) } == ["60 ping", "121 ping"])
  }

  @Test("an old connection is drained and later closed, each at its time")
  func age() {
    let age = "the connection has reached its maximum age; call again"
    let busy = { (_: Int64) in Seen(hasReceived: true, callCount: 1) }
    #expect(actions(until: 8000) { busy($0) } == ["3600 drain: \(age)", "7200 cut: max_age_grace"])
    #expect(actions(jitter: -1, until: 3500) { busy($0) } == ["3240 drain: \(age)"])
    #expect(actions(jitter: 0.625, until: 3830) { busy($0) } == ["3825 drain: \(age)"])
  }

  @Test("a connection that takes no bytes is closed")
  func unwritable() {
    #expect(
      actions { Seen(hasReceived: true, callCount: 1, isWritable: $0 < 10) }
        == ["39 cut: client_reads_too_slowly"])
  }

  @Test("without limits, nothing happens")
  func unlimited() {
    var limits = TimeLimits()
    (limits.handshake, limits.idle, limits.keepalive, limits.age, limits.download) = (nil, nil, nil, nil, nil)
    #expect(actions(limits) { _ in Seen(hasHandshaken: false, isWritable: false) } == [])
  }

  @Test("a transfer falls behind with its rate, and catches up")
  func lag() {
    /// Adds seconds in which so many bytes were transferred, and returns those at which the transfer was late.
    func late(_ byteCounts: [Int], rate: Int) -> [Int] {
      var lag = TransferLag()
      return byteCounts.indices.filter {
        lag.add(.seconds(1), byteCount: byteCounts[$0], minBytesPerSecond: rate, limit: .seconds(3))
      }
    }
    #expect(late([500, 500, 500, 500, 500, 500, 5000, 0, 0], rate: 1000) == [5])
    #expect(late([1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0], rate: 0) == [10])
  }

  @Test("connections are limited in all and of each peer")
  func count() {
    let count = ConnectionCount(limit: 3, perPeer: 2)
    var places = ["a", "a", "a", "b", "c"].map { count.open($0) }
    #expect(places.map { $0 != nil } == [true, true, false, true, false])
    places[0] = nil
    places.append(count.open("c"))
    #expect(places[5] != nil && count.openCount == 3 && count.refusedCount == 2)
    withExtendedLifetime(places) {}
  }
}
