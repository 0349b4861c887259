internal import CoreMetrics
package import Logging
internal import NIOCore

/// Limits on what a client may send on one connection and in one call.
///
/// Each limit counts frames that can flood the worker. A client can still ping, cancel and change settings as much as
/// its work requires.
package struct ConnectionLimits: Sendable {
  /// Maximum number of PING frames in 30 seconds from a client that receives nothing but their answers.
  ///
  /// Each frame that the worker sends earns the client another PING: grpc-go and C-core send one with nearly every
  /// burst of data that they receive, to estimate the bandwidth.
  package var maxPings = 200
  /// Maximum number of SETTINGS frames that a client may send in 30 seconds.
  ///
  /// The HTTP/2 handler's own limit is 200.
  package var maxSettings = 150
  /// Maximum number of calls that a client may cancel before `minCallTime` in 10 seconds, in addition to one for each
  /// call that it lets finish.
  ///
  /// Further calls of the connection are refused. Ten times as many end the connection.
  package var maxResets = 1000
  /// The time after which the cancellation of a call does not count: how many calls can be open at the same time limits
  /// them, as it does calls that finish.
  package var minCallTime = Duration.milliseconds(100)
  /// Maximum number of other frames that carry no call, such as WINDOW_UPDATE, GOAWAY and unknown ones, that a client
  /// may send in 30 seconds, in addition to two for each frame that the worker sends.
  package var maxControls = 10_000
  /// Maximum size of a call's metadata in bytes, as HTTP/2 counts it: 32 bytes plus name and value for each field.
  package var maxMetadataByteCount = 16 << 10
  /// Maximum size of one message in bytes, after decompression.
  package var maxMessageByteCount = 64 << 20
  /// The paths of the methods whose messages contain images, as in `/package.Service/Method`; `nil` for all.
  package var imagePaths: Set<String>?
  /// The paths of the methods with any number of messages; `nil` for all.
  ///
  /// A call of another method is complete when its stream ends behind its only message.
  package var streamingPaths: Set<String>?
  /// Maximum size in bytes of one message of any other method: it is read on an event loop.
  package var maxOtherMessageByteCount = 256 << 10
  /// Maximum total size in bytes of the compressed messages of all open calls, after decompression.
  package var maxInflatedByteCount = 256 << 20
  /// Decides about calls before their messages are received.
  package var calls = CallAdmission.always
  /// The memory that messages are charged to.
  package var messages: any MessageMemory = UnlimitedMemory()
  /// The number of bytes that a client may send on a stream before its message is charged.
  ///
  /// Further bytes may be sent when the message is charged.
  package var streamWindowByteCount = 64 << 10
  /// The HTTP/2 flow-control window of a connection in bytes; also of a stream with several messages, if there is room.
  package var windowByteCount = 1 << 20
  /// Maximum payload size in bytes of an HTTP/2 frame from a client; must match the HTTP/2 handler's setting.
  package var maxFrameByteCount = 16 << 10
  /// Limits on the time that clients take.
  package var time = TimeLimits()
  /// Limits on the number of connections.
  package var connections = ConnectionCount(limit: .max, perPeer: .max)
  /// Maximum number of connections that the kernel queues until the worker accepts them.
  ///
  /// The kernel's own limit may be lower.
  package var backlog: Int32 = 4096
  /// Full names of the services whose calls a drain ends, because they run for as long as the client wants.
  package var endedByDrain = OperationalServices.names
  /// Whether the worker ends, whatever calls are open.
  package var isEnding: @Sendable () -> Bool = { false }
  /// Logger for closed connections.
  package var logger: Logger
  /// The report of calls that no interceptor sees.
  package var callLog: CallLog

  /// Creates the default limits.
  package init(logger: Logger = Logger(label: "connections") { _ in SwiftLogNoOpLogHandler() }) {
    self.logger = logger
    callLog = CallLog(metrics: NOOPMetricsHandler.instance, logger: logger)
  }

  /// Whether a method has any number of messages.
  func isStreaming(path: String) -> Bool { path.utf8.count > 256 || streamingPaths?.contains(path) ?? true }

  /// Returns the limit on each message of a method.
  func messageLimit(path: String) -> MessageLimit {
    // A path as long as the client likes is not hashed.
    guard let imagePaths, path.utf8.count > 256 || !imagePaths.contains(path) else {
      // The service refuses too many bytes of an image with details.
      return MessageLimit(byteCount: maxMessageByteCount, readByteCount: maxMessageByteCount + (64 << 10))
    }
    let byteCount = min(maxOtherMessageByteCount, maxMessageByteCount)
    return MessageLimit(
      name: "request_bytes_besides_images", advice: "", byteCount: byteCount, readByteCount: byteCount)
  }

  /// The maximum metadata size in bytes that is advertised to clients, which refuse to send more; a call above it ends
  /// the connection.
  ///
  /// It is well above the maximum that is served, so that a call with too much metadata still receives an answer, but
  /// no more than the frames can carry.
  var maxReadMetadataByteCount: Int {
    let framesByteCount = HeaderContinuation.maxForwardedCount * maxFrameByteCount
    return max(64 << 10, 4 * maxMetadataByteCount, min(1 << 20, framesByteCount))
  }
}

/// The limit on the size of each message of a call.
struct MessageLimit {
  var name = "max_message_bytes"
  /// The advice to the client, which follows the reason.
  var advice = "; send the image in chunks with BatchProcess"
  /// The limit in bytes.
  var byteCount: Int
  /// The size in bytes up to which a message is read.
  var readByteCount: Int

  /// Returns the refusal of a message of `byteCount` bytes, as far as its size is known.
  ///
  /// - `measure`: how the message's size compares with `byteCount`, as in "at least ".
  func refusal(_ byteCount: Int, measure: String = "") -> RequestRefusal {
    .tooLarge(.init(name: name, limit: self.byteCount, value: byteCount), measure: measure, advice: advice)
  }
}

/// A token bucket: a number of events that may happen at once, refilled evenly over a period.
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

  /// Uses one token; returns `false` if none is left.
  mutating func take(now: NIODeadline) -> Bool {
    guard remains(now: now) else { return false }
    left -= 1
    return true
  }

  /// Returns whether a token is left.
  mutating func remains(now: NIODeadline) -> Bool {
    let elapsed = Double((now - updated).nanoseconds) / Double(period.nanoseconds)
    left = min(capacity, left + elapsed * capacity)
    updated = now
    return left >= 1
  }

  /// Adds tokens, up to the capacity.
  mutating func earn(_ count: Double = 1) { left = min(capacity, left + count) }
}
