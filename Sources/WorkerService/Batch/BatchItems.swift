internal import AsyncAlgorithms
internal import FoundationEssentials
internal import Synchronization

/// The bytes of one item on their way from the stream to its picture.
final class Upload: Sendable {
  /// Holds one chunk: sending waits until the picture took the one before.
  let chunks = AsyncChannel<Data>()
  private let isComplete = Mutex(false)

  /// Whether the item's `end` has come.
  var hasEnded: Bool { isComplete.withLock { $0 } }

  /// No byte follows.
  func end() {
    isComplete.withLock { $0 = true }
    chunks.finish()
  }

  /// Nobody takes bytes any more, or none will come: senders and takers go on at once.
  func abandon() { chunks.finish() }
}

/// The items of one batch stream: which are open, which are worked on, and which have ended.
final class BatchItems: Sendable {
  /// What a part's item id refers to.
  enum Standing {
    /// Nothing was said of this id yet.
    case new
    /// Its upload is open.
    case open(Upload)
    /// All its bytes are here, and it is worked on.
    case working
    /// It has ended, or was refused. Parts that were under way when it did are not an error.
    case ended
  }

  private struct State {
    var open: [String: Upload] = [:]
    var working: Set<String> = []
    var wholeCount = 0
    /// Items whose end is on its way; nothing else is said of them.
    var claimed: Set<String> = []
    var ended: Set<String> = []
    // Oldest first, so that a stream of any length holds a bounded number of ids.
    var endedOrder: [String] = []
    /// The newest item of each `preview_key`, until it has ended.
    var keyed: [String: BatchItem] = [:]
    /// Items that gave way to others, until they have ended.
    var leaving: Set<String> = []
    /// Resumed when an item has ended for which the stream may wait.
    var roomWaiter: CheckedContinuation<Bool, Never>?
  }

  /// The ended items that are remembered, to tell a late part from a stray one.
  static let rememberedCount = 8192

  private let state = Mutex(State())
  private let changes = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

  /// Yields whenever an item has ended; one consumer.
  var itemEnds: AsyncStream<Void> { changes.stream }

  /// Makes `itemEnds` yield.
  func noteChange() { changes.continuation.yield() }

  var isEmpty: Bool { state.withLock { $0.open.isEmpty && $0.working.isEmpty } }

  /// The uploads that are open.
  /// - `key`: an item with this key would give way, and is not counted.
  func openCount(besides key: String) -> Int {
    state.withLock { state in
      let isLeaving = state.keyed[key].map { state.open[$0.id] != nil } ?? false
      return state.open.count - (isLeaving ? 1 : 0)
    }
  }

  func standing(of id: String) -> Standing {
    state.withLock { state in
      if let upload = state.open[id] { return .open(upload) }
      if state.working.contains(id) { return .working }
      return state.ended.contains(id) ? .ended : .new
    }
  }

  func open(_ id: String) -> Upload {
    let upload = Upload()
    state.withLock { $0.open[id] = upload }
    return upload
  }

  /// The upload's last byte has come.
  func complete(_ id: String) {
    let upload = state.withLock { state in
      let upload = state.open.removeValue(forKey: id)
      if upload != nil { state.working.insert(id) }
      return upload
    }
    upload?.end()
  }

  /// Waits until fewer than `limit` whole pictures are worked on, and counts one more.
  ///
  /// For one caller at a time.
  func beginWhole(_ id: String, limit: Int) async {
    await wait { state in
      guard state.wholeCount < limit else { return false }
      state.wholeCount += 1
      state.working.insert(id)
      return true
    }
  }

  private func wait(until isTaken: @Sendable (inout State) -> Bool) async {
    while true {
      let isDone = await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
        let isDone = state.withLock { state in
          if isTaken(&state) { return true }
          state.roomWaiter = continuation
          return false
        }
        if isDone { continuation.resume(returning: true) }
      }
      if isDone { return }
    }
  }

  /// The newest item of its key begins: one that has not ended gives way to it.
  ///
  /// Those that gave way have an end still to be sent. Waits while there are `limit` of them, as a caller that reads none
  /// could make any number. For one caller at a time.
  func enter(_ item: BatchItem, limit: Int) async {
    guard !item.key.isEmpty else { return }
    let (before, upload) = state.withLock { state in
      let before = state.keyed.updateValue(item, forKey: item.key)
      let upload = before.flatMap { state.open.removeValue(forKey: $0.id) }
      if let before {
        if upload != nil { state.working.insert(before.id) }
        state.leaving.insert(before.id)
      }
      return (before, upload)
    }
    before?.giveWay(to: item.id)
    upload?.abandon()
    await wait { $0.leaving.count < limit }
  }

  /// The item has its end.
  func leave(_ item: BatchItem) {
    state.withLock { state in
      if state.keyed[item.key] === item { state.keyed[item.key] = nil }
    }
    item.release()
  }

  func endWhole(_ id: String) {
    let waiter = state.withLock { state in
      state.wholeCount -= 1
      return state.roomWaiter.take()
    }
    end(id)
    waiter?.resume(returning: false)
  }

  /// Whether the caller is the one who gives the item its end: an item has one, whoever finds a reason for it first.
  func claimEnd(_ id: String) -> Bool {
    state.withLock { !$0.ended.contains(id) && $0.claimed.insert(id).inserted }
  }

  /// Whether somebody has given the item its end, or is about to.
  func isClaimed(_ id: String) -> Bool {
    state.withLock { $0.claimed.contains(id) || $0.ended.contains(id) }
  }

  /// Stops taking bytes for an item that was given its end while its upload was open.
  func abandonUpload(_ id: String) {
    state.withLock { $0.open[id] }?.abandon()
  }

  /// The item has its end, and nobody works on it any more.
  func end(_ id: String) {
    let (upload, waiter) = state.withLock { state in
      state.working.remove(id)
      state.claimed.remove(id)
      let waiter = state.leaving.remove(id) == nil ? nil : state.roomWaiter.take()
      if state.ended.insert(id).inserted { state.endedOrder.append(id) }
      if state.endedOrder.count > 2 * Self.rememberedCount {
        for forgotten in state.endedOrder.prefix(Self.rememberedCount) { state.ended.remove(forgotten) }
        state.endedOrder.removeFirst(Self.rememberedCount)
      }
      return (state.open.removeValue(forKey: id), waiter)
    }
    upload?.abandon()
    waiter?.resume(returning: false)
    noteChange()
  }

  /// No part will come any more.
  func abandonUploads() {
    let uploads = state.withLock { Array($0.open.values) }
    for upload in uploads { upload.abandon() }
  }
}
