/// The network that all uploads share: what is still to arrive, and the rate at which bytes arrive.
///
/// If every client might send at once, all of their uploads would arrive at the same time, and on a slow link too late.
/// So the windows of large messages are opened in an order, a quarter of a second's bytes at a time, and a call is
/// refused at its headers if the uploads before it take longer than its client waits.
///
/// The rate is that of times in which there always were bytes to arrive. Clients that send slowly lower it as a slow link
/// would, so that:
/// - an upload that arrives faster raises it,
/// - what an open upload delivers in half a second bounds what it keeps others from sending,
/// - so much may always be sent that such clients seldom matter (`minOpenByteCount`),
/// - a connection that sends nothing may try once in a while.
struct UploadLink {
  typealias Instant = ContinuousClock.Instant

  private struct Connection {
    /// The bytes that have not arrived of messages whose clients may send them.
    var open = 0
    /// The bytes of messages that wait for a window.
    var waiting = 0
    /// The number of messages that are open or wait.
    var messageCount = 0
    /// The number of calls that were promised to be received, from their headers until their message is here.
    var promisedCount = 0
    /// The average size of the latest messages in bytes; 0 before the first.
    var averageByteCount = 0
    var receivedByteCount = 0
    /// Whether `open` was above 0 when the current interval began.
    var wasOpen = false
    /// The time since which `open` is above 0, and the number of bytes that all connections had received then.
    var busy: (since: Instant, receivedByteCount: Int)?
    /// The part of `open` that keeps others from sending.
    var maxCounted = Int.max

    var counted: Int { min(open, maxCounted) }
    var expected: Int { counted + waiting + max(0, promisedCount - messageCount) * averageByteCount }
    var isIdle: Bool { messageCount == 0 && promisedCount == 0 }
  }

  /// The size in bytes up to which messages need not wait for a window: that of a usual first window.
  static let freeByteCount = 64 << 10
  private static let interval = Duration.milliseconds(250)
  private static let minOpenByteCount = 2 << 20
  private static let trialInterval = Duration.seconds(1)
  /// The time without bytes after which the rate is forgotten.
  private static let memory = Duration.seconds(10)
  private static let maxConnectionCount = 1024
  /// The size in bytes of uploads whose rates count; smaller ones wait in buffers of the system until they are read at once.
  private static let minMeasuredByteCount = 1 << 20

  private var connections: [UInt64: Connection] = [:]
  /// The sum of `counted` of all connections.
  private var counted = 0
  /// The number of connections with open messages.
  private var busyCount = 0
  /// The bytes that arrive in a second; `nil` before there were any to wait for.
  private(set) var rate: Double?
  private var began: Instant?
  private var receivedByteCount = 0
  /// The value of `receivedByteCount` at the beginning of the interval.
  private var byteCountBefore = 0
  /// Whether there always were bytes to arrive since the beginning of the interval.
  private var isBusy = false
  private var lastPromisedTrial: Instant?
  private var lastOpenTrial: Instant?
  /// The number of bytes that have arrived since a message was refused room; `nil` if none waits for room.
  private var byteCountSinceRefusal: Int?

  // MARK: Calls

  /// Counts the message of a call whose headers have arrived, until `release`, if it can be received in time.
  ///
  /// - Parameters:
  ///   - connection: The connection of the call.
  ///   - limit: The time in which it must have arrived; `nil` for no limit.
  ///   - now: The time.
  /// - Returns: The estimated time, if it is too long; otherwise `nil`.
  mutating func promise(_ connection: UInt64, within limit: Duration?, _ now: Instant) -> Duration? {
    if let limit, let time = time(untilEndOfNextOf: connection), time > limit {
      guard connections[connection]?.isIdle ?? true, Self.mayTry(&lastPromisedTrial, now) else { return time }
    }
    if connections.count > Self.maxConnectionCount { connections = connections.filter { !$1.isIdle } }
    update(connection) { $0.promisedCount += 1 }
    return nil
  }

  /// Ends what `promise` began.
  mutating func release(_ connection: UInt64) { update(connection) { $0.promisedCount -= 1 } }

  /// Estimates the time until a further call of a connection has arrived; `nil` if nothing is known.
  ///
  /// Connections get equal shares of the link.
  private func time(untilEndOfNextOf connection: UInt64) -> Duration? {
    guard let rate, let own = connections[connection], own.averageByteCount > Self.freeByteCount else { return nil }
    let byteCount = own.expected + own.averageByteCount
    let others = connections.reduce(0) { $1.key == connection ? $0 : $0 + min($1.value.expected, byteCount) }
    return min(.seconds(Double(byteCount + others) / rate), Self.maxTime)
  }

  // MARK: Messages

  /// Whether the client of a message may send it now.
  mutating func hasRoom(for byteCount: Int, of connection: UInt64, _ now: Instant) -> Bool {
    guard let rate, byteCount > Self.freeByteCount, counted > 0 else { return true }
    let room = max(Self.minOpenByteCount, Int(rate * (Self.interval / .seconds(1))))
    if counted + byteCount <= room { return true }
    if connections[connection]?.open ?? 0 == 0, Self.mayTry(&lastOpenTrial, now) { return true }
    byteCountSinceRefusal = 0
    return false
  }

  /// Whether so much has arrived since a message was refused room that it is worth asking again, once.
  mutating func takeRoomMade() -> Bool {
    guard let byteCountSinceRefusal, byteCountSinceRefusal >= Self.freeByteCount || counted == 0 else { return false }
    self.byteCountSinceRefusal = nil
    return true
  }

  /// The longest time that is estimated, however slow the link is.
  private static let maxTime = Duration.seconds(3600)

  private static func mayTry(_ last: inout Instant?, _ now: Instant) -> Bool {
    if let last, last.duration(to: now) < trialInterval { return false }
    last = now
    return true
  }

  /// Counts a message whose size is known, until it has arrived or is abandoned.
  mutating func begin(_ byteCount: Int, of connection: UInt64, isOpen: Bool, _ now: Instant) {
    if connections.count > 2 * Self.maxConnectionCount { connections = connections.filter { !$1.isIdle } }
    update(connection, now) { connection in
      connection.messageCount += 1
      if isOpen { connection.open += byteCount } else { connection.waiting += byteCount }
      let average = connection.averageByteCount
      connection.averageByteCount = average == 0 ? byteCount : average + (byteCount - average) / 5
    }
  }

  /// Counts a message that has waited as open.
  mutating func open(_ byteCount: Int, of connection: UInt64, _ now: Instant) {
    update(connection, now) { ($0.open, $0.waiting) = ($0.open + byteCount, $0.waiting - byteCount) }
  }

  /// Counts bytes that have arrived of an open message.
  mutating func receive(_ byteCount: Int, of connection: UInt64, isLast: Bool, _ now: Instant) {
    receivedByteCount += byteCount
    update(connection, now) { connection in
      connection.open -= byteCount
      connection.receivedByteCount += byteCount
      if isLast { connection.messageCount -= 1 }
    }
    byteCountSinceRefusal? += byteCount
    measure(now)
  }

  /// Stops counting a message of which `byteCount` bytes will not arrive.
  mutating func abandon(_ byteCount: Int, of connection: UInt64, wasOpen: Bool) {
    update(connection) { connection in
      connection.messageCount -= 1
      if wasOpen { connection.open -= byteCount } else { connection.waiting -= byteCount }
    }
  }

  private mutating func update(_ name: UInt64, _ now: Instant? = nil, _ change: (inout Connection) -> Void) {
    var connection = connections[name] ?? Connection()
    let before = connection
    change(&connection)
    counted += connection.counted - before.counted
    if before.open == 0, connection.open > 0 {
      busyCount += 1
      connection.busy = now.map { ($0, receivedByteCount) }
    } else if before.open > 0, connection.open == 0 {
      busyCount -= 1
      if busyCount == 0 { isBusy = false }
      if let (since, byteCount) = connection.busy, let now {
        note(receivedByteCount - byteCount, in: since.duration(to: now))
      }
      connection.busy = nil
    }
    connections[name] = connection
  }

  // MARK: Rate

  private mutating func measure(_ now: Instant) {
    guard let began, began.duration(to: now) < Self.memory else { return restart(now, rate: nil) }
    let elapsed = began.duration(to: now)
    guard elapsed >= Self.interval else { return }
    let sample = Double(receivedByteCount - byteCountBefore) / (elapsed / .seconds(1))
    guard let rate else { return restart(now, rate: isBusy ? sample : nil) }
    restart(now, rate: sample < rate && isBusy ? rate + (sample - rate) * 0.05 : Self.raised(rate, by: sample))
  }

  /// Notes that `byteCount` bytes arrived while there were always some to wait for.
  private mutating func note(_ byteCount: Int, in time: Duration) {
    guard let rate, byteCount >= Self.minMeasuredByteCount, time > .zero else { return }
    self.rate = Self.raised(rate, by: Double(byteCount) / (time / .seconds(1)))
  }

  /// A link is as fast as it was seen to be, since less may have been asked of it; but bytes that waited in buffers of the
  /// system make it seem a little faster.
  private static func raised(_ rate: Double, by sample: Double) -> Double {
    rate + max(0, sample - rate) * (sample > 2 * rate ? 0.4 : 0.05)
  }

  private mutating func restart(_ now: Instant, rate: Double?) {
    (self.rate, began, byteCountBefore) = (rate, now, receivedByteCount)
    counted = 0
    isBusy = busyCount > 0
    for name in connections.keys {
      guard var connection = connections[name] else { continue }
      connection.maxCounted = connection.wasOpen && connection.open > 0 ? 2 * connection.receivedByteCount : .max
      (connection.wasOpen, connection.receivedByteCount) = (connection.open > 0, 0)
      counted += connection.counted
      connections[name] = connection
    }
  }
}
