internal import WorkThreads

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
    var request: MessageRequest
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
  var demand: Int { nextLarge.map { waiters[$0].request.byteCount } ?? 0 }

  /// Charges a message if there is room for it.
  /// - Parameters:
  ///   - request: The message.
  ///   - room: The part of the whole budget that is not used for anything but messages, in bytes.
  ///   - now: The time.
  /// - Returns: Whether there was room.
  mutating func take(_ request: MessageRequest, room: Int, now: UploadLink.Instant) -> Bool {
    let isSmall = request.byteCount <= Self.smallByteCount
    let hasRoom = (isSmall || nextLarge == nil) && mayBegin(request, others: byteCount, room: room, now)
    guard hasRoom || request.isContinuation && fitsReserve(request.byteCount) else { return false }
    if !request.isContinuation { link.begin(request.byteCount, of: request.connection, isOpen: true, now) }
    add(request, hasRoom: hasRoom)
    return true
  }

  /// Lets a message wait, unless too many wait already.
  /// - Returns: The identifier of the waiting message; `nil` if too many wait.
  mutating func wait(_ request: MessageRequest, now: UploadLink.Instant) -> UInt64? {
    guard waitingByteCount + request.bufferedByteCount <= maxWaitingByteCount else { return nil }
    nextID += 1
    if !request.isContinuation { link.begin(request.byteCount, of: request.connection, isOpen: false, now) }
    waitingByteCount += request.bufferedByteCount
    byteCount += request.bufferedByteCount
    waiters.append(Waiter(id: nextID, request: request))
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
    let request = remove(at: index).request
    if !request.isContinuation { link.abandon(request.byteCount, of: request.connection, wasOpen: false) }
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
    var large = nextLarge
    var index = 0
    while index < waiters.count {
      let request = waiters[index].request
      let hasRoom =
        (request.byteCount <= Self.smallByteCount || index == large) && mayBegin(waiting: request, room: room, now)
      if hasRoom || request.isContinuation && fitsReserve(request.byteCount) {
        granted.append(admit(at: index, hasRoom: hasRoom, now))
        large = nextLarge
      } else {
        index += 1
      }
    }
    while let index = large, mayBegin(waiting: waiters[index].request, room: room, now) {
      granted.append(admit(at: index, hasRoom: true, now))
      large = nextLarge
    }
    return granted
  }

  /// Charges a waiter in place of the bytes that it buffers.
  private mutating func admit(at index: Int, hasRoom: Bool, _ now: UploadLink.Instant) -> Waiter {
    let waiter = remove(at: index)
    let request = waiter.request
    if !request.isContinuation { link.open(request.byteCount, of: request.connection, now) }
    add(request, hasRoom: hasRoom)
    return waiter
  }

  private mutating func remove(at index: Int) -> Waiter {
    let waiter = waiters.remove(at: index)
    waitingByteCount -= waiter.request.bufferedByteCount
    byteCount -= waiter.request.bufferedByteCount
    return waiter
  }

  /// The index of the large message to admit next: the first one of the connection that uses the least memory.
  private var nextLarge: Int? {
    var best: (index: Int, used: Int)?
    for (index, waiter) in waiters.enumerated() where waiter.request.byteCount > Self.smallByteCount {
      let used = connections[waiter.request.connection] ?? 0
      guard isWithinShare(waiter.request.byteCount, used), used < best?.used ?? .max else { continue }
      best = (index, used)
    }
    return best?.index
  }

  /// Whether a connection may use so much: one message of any size, or half of the limit.
  private func isWithinShare(_ byteCount: Int, _ used: Int) -> Bool { used == 0 || used + byteCount <= limit / 2 }

  private mutating func mayBegin(waiting request: MessageRequest, room: Int, _ now: UploadLink.Instant) -> Bool {
    mayBegin(request, others: byteCount - request.bufferedByteCount, room: room, now)
  }

  /// - `others`: the size in bytes of the other messages.
  private mutating func mayBegin(
    _ request: MessageRequest, others: Int, room: Int, _ now: UploadLink.Instant
  ) -> Bool {
    let isSmall = request.byteCount <= Self.smallByteCount
    guard isSmall || isWithinShare(request.byteCount, connections[request.connection] ?? 0),
      others + request.byteCount <= min(limit, room) - (isSmall ? 0 : reserve)
    else { return false }
    return request.isContinuation || link.hasRoom(for: request.byteCount, of: request.connection, now)
  }

  /// Whether a message that continues a call fits into what is left to such messages.
  private func fitsReserve(_ byteCount: Int) -> Bool { reservedByteCount + byteCount <= continuationReserve }

  private mutating func add(_ request: MessageRequest, hasRoom: Bool) {
    byteCount += request.byteCount
    if !hasRoom { reservedByteCount += request.byteCount }
    connections[request.connection, default: 0] += request.byteCount
  }
}
