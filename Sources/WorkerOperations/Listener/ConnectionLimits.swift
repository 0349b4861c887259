package import Logging
internal import NIOCore

/// What one client may do to its connection before it is cut, and what one call may send.
///
/// Every limit counts what floods: a client that works may ping, cancel and reconfigure as much as its work needs.
package struct ConnectionLimits: Sendable {
  /// PING frames that a client may send in 30 seconds without receiving anything but their answers.
  ///
  /// Each frame that the worker sends earns the client another one: grpc-go and C-core ping with nearly every burst of
  /// data that they receive, to estimate the bandwidth.
  package var maxPings = 200
  /// SETTINGS frames that a client may send in 30 seconds.
  ///
  /// The HTTP/2 handler's own limit is 200.
  package var maxSettings = 150
  /// Calls that a client may cancel in 10 seconds beyond those that it lets finish.
  package var maxResets = 1000
  /// Maximum size of a call's metadata, as HTTP/2 counts it: 32 bytes more than name and value for each field.
  package var maxMetadataByteCount = 16 << 10
  /// Maximum size of one message, after decompression.
  package var maxMessageByteCount = 64 << 20
  /// Maximum size of what all open calls have sent in compressed messages, after decompression.
  package var maxInflatedByteCount = 256 << 20
  /// Where these bytes are charged as well.
  package var inflationAccount = MemoryAccount.unlimited
  /// Maximum size of the HTTP/2 frames that a client may send: the HTTP/2 handler's.
  package var maxFrameByteCount = 16 << 10
  /// Connections that the kernel holds until the worker accepts them.
  ///
  /// The kernel's own limit may be lower.
  package var backlog: Int32 = 4096
  /// Full names of services whose calls a drain ends, because they go on for as long as their client wants.
  package var endedByDrain = OperationalServices.names
  /// Where cut connections and refused calls are reported.
  package var logger: Logger

  package init(logger: Logger) { self.logger = logger }

  /// What is advertised to clients, which refuse larger metadata themselves; above it the connection ends.
  ///
  /// Well above what is served, so that a call with too much metadata can be answered; but no more than frames can carry.
  var maxReadMetadataByteCount: Int {
    let framesByteCount = HeaderContinuation.maxForwardedCount * maxFrameByteCount
    return max(64 << 10, 4 * maxMetadataByteCount, min(1 << 20, framesByteCount))
  }
}

/// Memory of the worker that is charged before it is taken.
package struct MemoryAccount: Sendable {
  package static let unlimited = MemoryAccount(charge: { _ in true }, refund: { _ in })

  /// Returns whether there was room for that many bytes.
  package var charge: @Sendable (_ byteCount: Int) -> Bool
  package var refund: @Sendable (_ byteCount: Int) -> Void

  package init(
    charge: @escaping @Sendable (_ byteCount: Int) -> Bool, refund: @escaping @Sendable (_ byteCount: Int) -> Void
  ) {
    self.charge = charge
    self.refund = refund
  }
}

/// A number of events that may happen at once, and that comes back evenly over a time.
struct Allowance {
  private let capacity: Double
  private let period: TimeAmount
  private var left: Double
  private var updated: NIODeadline

  init(_ capacity: Int, per period: TimeAmount, now: NIODeadline) {
    self.capacity = Double(capacity)
    self.period = period
    left = Double(capacity)
    updated = now
  }

  /// Takes one; `false` when none is left.
  mutating func take(now: NIODeadline) -> Bool {
    let elapsed = Double((now - updated).nanoseconds) / Double(period.nanoseconds)
    left = min(capacity, left + elapsed * capacity)
    updated = now
    guard left >= 1 else { return false }
    left -= 1
    return true
  }

  /// Gives one back.
  mutating func earn() { left = min(capacity, left + 1) }
}
