/// The part of a memory budget that received messages use, and the messages that wait for it.
///
/// A message is charged from its length prefix, before its bytes are read, until its memory is freed. One that has to
/// wait counts with the bytes that its client may send meanwhile. Small messages pass large ones, because the bytes
/// that an upload in progress needs arrive in them. Of the large ones, the connection that uses the least memory goes
/// first.
///
/// Uploads in progress may have reserved all other memory, and free it only when their last bytes have arrived. So a
/// message that continues a call needs no room if it fits into what is left of `continuationReserve`.
///
/// The first message of a call is also received in an order; see `UploadLink`.
struct MessageQueue {
  struct Waiter {
    var id: UInt64
    var byteCount: Int
    var connection: UInt64
    var bufferedByteCount: Int
    var isContinuation: Bool
    var grant: @Sendable () -> Void
  }

  /// Messages up to this size pass larger ones.
  static let smallByteCount = 1 << 20

  /// The maximum size of all messages together, in bytes.
  let limit: Int
  /// The total size in bytes of messages that were granted, and of the bytes of those that wait.
  private(set) var byteCount = 0
  private(set) var waitingByteCount = 0
  private(set) var waiters: [Waiter] = []
  /// The part of `continuationReserve` that is in use, in bytes.
  private(set) var reservedByteCount = 0
  /// The number of messages and windows that have left the queue since the process started.
  private(set) var endedCount: UInt64 = 0
  /// The network that first messages of calls share.
  var link = UploadLink()
  private var connections: [UInt64: Int] = [:]
  private var nextID: UInt64 = 0

  init(limit: Int) { self.limit = limit }

  /// The maximum size of one message in bytes; it fits beside `maxWaitingByteCount` and `reserve`.
  var maxMessageByteCount: Int { limit / 3 * 2 }
  /// The maximum size in bytes of what waiting messages buffer.
  var maxWaitingByteCount: Int { limit / 4 }
  /// The part of the limit that large messages and images leave to small messages, in bytes.
  var reserve: Int { limit / 12 }
  /// The size in bytes of all messages that may continue calls although there is no room; at least one of 4 MiB, which
  /// is the most that gRPC clients send by default, with its prefix and its other fields.
  var continuationReserve: Int { max(reserve, (4 << 20) + (64 << 10)) }

  /// The room in bytes that the next large message needs, and that images must leave to it.
  var demand: Int { nextLarge.map { waiters[$0].byteCount } ?? 0 }

  /// Charges a message if there is room for it.
  /// - Parameters:
  ///   - byteCount: The size of the message in bytes.
  ///   - connection: The connection that sends it.
  ///   - isContinuation: Whether its call has sent another message before.
  ///   - room: The part of the whole budget that is not used for anything but messages, in bytes.
  ///   - now: The time.
  /// - Returns: Whether there was room.
  mutating func take(
    _ byteCount: Int, of connection: UInt64, isContinuation: Bool, room: Int, now: UploadLink.Instant
  ) -> Bool {
    let isSmall = byteCount <= Self.smallByteCount
    let hasRoom =
      (isSmall || nextLarge == nil) && fits(byteCount, of: connection, others: self.byteCount, room: room)
      && (isContinuation || link.hasRoom(for: byteCount, of: connection, now))
    guard hasRoom || isContinuation && fitsReserve(byteCount) else { return false }
    if !isContinuation { link.begin(byteCount, of: connection, isOpen: true, now) }
    add(byteCount, of: connection, hasRoom: hasRoom)
    return true
  }

  /// Lets a message wait, unless too many wait already.
  /// - Returns: The identifier of the waiting message; `nil` if too many wait.
  mutating func wait(
    _ byteCount: Int, of connection: UInt64, isContinuation: Bool, buffering bufferedByteCount: Int,
    now: UploadLink.Instant, grant: @escaping @Sendable () -> Void
  ) -> UInt64? {
    guard waitingByteCount + bufferedByteCount <= maxWaitingByteCount else { return nil }
    nextID += 1
    if !isContinuation { link.begin(byteCount, of: connection, isOpen: false, now) }
    waitingByteCount += bufferedByteCount
    self.byteCount += bufferedByteCount
    waiters.append(
      Waiter(
        id: nextID, byteCount: byteCount, connection: connection, bufferedByteCount: bufferedByteCount,
        isContinuation: isContinuation, grant: grant))
    return nextID
  }

  /// Charges bytes that a client may send before its next message is charged, if there is room for them.
  ///
  /// At most half of what may wait: waiting messages need the rest.
  mutating func openWindow(_ byteCount: Int) -> Bool {
    guard waitingByteCount + byteCount <= maxWaitingByteCount / 2 else { return false }
    waitingByteCount += byteCount
    self.byteCount += byteCount
    return true
  }

  /// Returns bytes that `openWindow` charged.
  mutating func closeWindow(_ byteCount: Int) {
    endedCount += 1
    waitingByteCount -= byteCount
    self.byteCount -= byteCount
  }

  /// Removes a waiting message; returns `false` if it does not wait any more.
  mutating func abandon(_ id: UInt64) -> Bool {
    guard let index = waiters.firstIndex(where: { $0.id == id }) else { return false }
    let waiter = remove(at: index)
    if !waiter.isContinuation { link.abandon(waiter.byteCount, of: waiter.connection, wasOpen: false) }
    endedCount += 1
    return true
  }

  /// Returns a message's bytes to the budget.
  ///
  /// One that continues a call returns them to the reserve first, whether they are from there: they make room for as
  /// many bytes that are.
  mutating func release(_ byteCount: Int, of connection: UInt64, isContinuation: Bool) {
    self.byteCount -= byteCount
    endedCount += 1
    if isContinuation { reservedByteCount -= min(byteCount, reservedByteCount) }
    let left = (connections[connection] ?? 0) - byteCount
    connections[connection] = left > 0 ? left : nil
  }

  /// Charges the waiting messages that fit now, and removes them from the queue.
  mutating func grant(room: Int, now: UploadLink.Instant) -> [Waiter] {
    guard !waiters.isEmpty else { return [] }
    var granted: [Waiter] = []
    var index = 0
    while index < waiters.count {
      let waiter = waiters[index]
      let hasRoom =
        (waiter.byteCount <= Self.smallByteCount || index == nextLarge) && mayBegin(waiter, room: room, now)
      if hasRoom || waiter.isContinuation && fitsReserve(waiter.byteCount) {
        granted.append(admit(at: index, hasRoom: hasRoom, now))
      } else {
        index += 1
      }
    }
    while let index = nextLarge, mayBegin(waiters[index], room: room, now) {
      granted.append(admit(at: index, hasRoom: true, now))
    }
    return granted
  }

  /// Charges a waiter in place of the bytes that it buffers.
  private mutating func admit(at index: Int, hasRoom: Bool, _ now: UploadLink.Instant) -> Waiter {
    let waiter = remove(at: index)
    if !waiter.isContinuation { link.open(waiter.byteCount, of: waiter.connection, now) }
    add(waiter.byteCount, of: waiter.connection, hasRoom: hasRoom)
    return waiter
  }

  private mutating func remove(at index: Int) -> Waiter {
    let waiter = waiters.remove(at: index)
    waitingByteCount -= waiter.bufferedByteCount
    byteCount -= waiter.bufferedByteCount
    return waiter
  }

  /// The index of the large message to admit next: the first one of the connection that uses the least memory.
  private var nextLarge: Int? {
    var best: (index: Int, used: Int)?
    for (index, waiter) in waiters.enumerated() where waiter.byteCount > Self.smallByteCount {
      let used = connections[waiter.connection] ?? 0
      guard isWithinShare(waiter.byteCount, used), used < best?.used ?? .max else { continue }
      best = (index, used)
    }
    return best?.index
  }

  /// Whether a connection may use so much: one message of any size, or half of the limit.
  private func isWithinShare(_ byteCount: Int, _ used: Int) -> Bool { used == 0 || used + byteCount <= limit / 2 }

  private mutating func mayBegin(_ waiter: Waiter, room: Int, _ now: UploadLink.Instant) -> Bool {
    fits(waiter.byteCount, of: waiter.connection, others: byteCount - waiter.bufferedByteCount, room: room)
      && (waiter.isContinuation || link.hasRoom(for: waiter.byteCount, of: waiter.connection, now))
  }

  /// - `others`: the size in bytes of the other messages.
  private func fits(_ byteCount: Int, of connection: UInt64, others used: Int, room: Int) -> Bool {
    let isSmall = byteCount <= Self.smallByteCount
    let kept = isSmall ? 0 : reserve
    guard isSmall || isWithinShare(byteCount, connections[connection] ?? 0) else { return false }
    return used + byteCount <= min(limit, room) - kept
  }

  /// Whether a message that continues a call fits into what is left to such messages.
  private func fitsReserve(_ byteCount: Int) -> Bool { reservedByteCount + byteCount <= continuationReserve }

  private mutating func add(_ byteCount: Int, of connection: UInt64, hasRoom: Bool) {
    self.byteCount += byteCount
    if !hasRoom { reservedByteCount += byteCount }
    connections[connection, default: 0] += byteCount
  }
}
