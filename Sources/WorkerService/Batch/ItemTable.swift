internal import ImagePipeline
internal import Synchronization

/// The items of one batch stream with their states, under one lock.
///
/// Nothing is called, resumed or finished while the lock is held. Items are begun by one caller at a time.
final class ItemTable: Sendable {
  /// What a part's item id refers to.
  enum Standing {
    /// No part had this id yet.
    case unknown
    case uploading(BatchItem)
    /// Its upload was given an end before its last byte.
    case stopping
    /// All its bytes are here, and it is worked on.
    case working
    /// It has ended, or was refused. Parts that were under way when it did are not an error.
    case ended
  }

  private struct Entry {
    let item: BatchItem
    var state: ItemState
    /// Of an upload that has memory, while its bytes still arrive.
    var share: ConnectionShare?
  }

  private struct State {
    /// Items that are worked on, by id.
    var entries: [String: Entry] = [:]
    var ended = RecentIDs(maxCount: 2 * ItemTable.rememberedCount)
    /// The newest item of each `preview_key`, until it has ended.
    var newest: [String: BatchItem] = [:]
    /// The next item, where there is no room for it yet.
    var next: (item: BatchItem, continuation: CheckedContinuation<Void, Never>)?
  }

  /// The ended items that are remembered at least, to distinguish a late part from a stray one.
  static let rememberedCount = 8192

  private let maxOpenUploads: Int
  private let maxWholeImages: Int
  private let state = Mutex(State())
  private let changes = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

  /// - Parameters:
  ///   - maxOpenUploads: uploads that may be open, and as many replaced items that may not have ended.
  ///   - maxWholeImages: images that came in one part and are worked on.
  init(maxOpenUploads: Int, maxWholeImages: Int) {
    self.maxOpenUploads = maxOpenUploads
    self.maxWholeImages = maxWholeImages
  }

  /// Yields whenever an item has ended; one consumer.
  var itemEnds: AsyncStream<Void> { changes.stream }

  /// Makes `itemEnds` yield.
  func noteChange() { changes.continuation.yield() }

  /// Whether no item is worked on, or waits to be.
  var isEmpty: Bool { state.withLock { $0.entries.isEmpty && $0.next == nil } }

  func standing(of id: String) -> Standing {
    state.withLock { state in
      guard let entry = state.entries[id] else { return state.ended.contains(id) ? .ended : .unknown }
      return switch entry.state {
      case .active(.uploading): .uploading(entry.item)
      case .ending(.uploading): .stopping
      case .active(.working), .active(.replaced), .ending(.working), .ending(.replaced): .working
      }
    }
  }

  // MARK: Beginning

  /// Whether one more upload may be open.
  /// - `key`: an item with this key would be replaced, and is not counted.
  func hasRoomForUpload(replacing key: String) -> Bool {
    state.withLock { state in
      let replaced = state.newest[key]?.id
      return state.entries.values.count { $0.state.isOpen && $0.item.id != replaced } < maxOpenUploads
    }
  }

  /// Begins an item; one of the same key that has not ended is replaced.
  ///
  /// Waits while as many whole images are worked on as may be, and while there are too many replaced items: their ends have
  /// still to be sent, and a caller that reads none could make any number.
  func begin(_ item: BatchItem) async {
    if let replaced = replaceNewest(with: item) {
      replaced.cancellation.cancel()
      replaced.finishChunks()
    }
    await withCheckedContinuation { continuation in
      let isBegun = state.withLock { state in
        if begin(item, in: &state) { return true }
        state.next = (item, continuation)
        return false
      }
      if isBegun { continuation.resume() }
    }
  }

  private func replaceNewest(with item: BatchItem) -> BatchItem? {
    guard !item.key.isEmpty else { return nil }
    return state.withLock { state in
      let replaced = state.newest.updateValue(item, forKey: item.key)
      if let replaced { state.entries[replaced.id]?.state.replace(by: item.id) }
      return replaced
    }
  }

  private func begin(_ item: BatchItem, in state: inout State) -> Bool {
    let entries = state.entries.values
    guard item.key.isEmpty || entries.count(where: \.state.isReplaced) < maxOpenUploads else { return false }
    guard !item.isWhole || entries.count(where: \.item.isWhole) < maxWholeImages else { return false }
    state.entries[item.id] = Entry(item: item, state: .active(item.isWhole ? .working : .uploading(.none)))
    return true
  }

  // MARK: Uploading

  /// The upload's last byte is here.
  func complete(_ item: BatchItem) {
    let (isNews, share) = state.withLock { state in
      (state.entries[item.id]?.state.complete() ?? false, state.entries[item.id]?.share.take())
    }
    // It needs no more of its client, and so counts no longer.
    _ = share
    if isNews { item.finishChunks() }
  }

  /// Whether all bytes of the item are here.
  func isComplete(_ item: BatchItem) -> Bool {
    state.withLock { $0.entries[item.id]?.state.progress == .working }
  }

  /// Whether the item may wait for memory; an upload whose bytes still arrive is then noted as waiting.
  ///
  /// An upload that waits is not read on, and so holds up the stream behind it. If another upload of the same stream
  /// already had memory, it could never finish, because its next bytes stand behind those of the one that waits: each would
  /// wait for the other. So at most one unfinished upload of a stream waits, and only while no other has memory.
  func mayWaitForMemory(_ item: BatchItem) -> Bool {
    state.withLock { state in
      guard state.entries[item.id]?.state.isUploading ?? false else { return true }
      guard !state.entries.values.contains(where: \.state.needsStream) else { return false }
      state.entries[item.id]?.state.set(.waiting)
      return true
    }
  }

  /// Notes whether an upload has memory, and keeps its share until its last byte is here.
  func note(_ memory: ItemState.UploadMemory, of item: BatchItem, share: ConnectionShare? = nil) {
    state.withLock { state in
      state.entries[item.id]?.state.set(memory)
      if state.entries[item.id]?.state.isOpen ?? false { state.entries[item.id]?.share = share }
    }
  }

  /// No more bytes of an upload are waited for.
  func stopUpload(_ id: String) {
    state.withLock { $0.entries[id]?.item }?.finishChunks()
  }

  /// No part will come any more.
  func finishUploads() {
    let items = state.withLock { $0.entries.values.filter(\.state.isOpen).map(\.item) }
    for item in items { item.finishChunks() }
  }

  // MARK: Ending

  /// Whether the caller is the one who gives the item its end: an item has one, whoever finds a reason for it first.
  func claimEnd(of item: BatchItem) -> Bool {
    state.withLock { $0.entries[item.id]?.state.claimEnd() ?? false }
  }

  /// Whether the item has no end yet.
  func isActive(_ item: BatchItem) -> Bool {
    state.withLock { if case .active = $0.entries[item.id]?.state { true } else { false } }
  }

  /// Why there is no result, when `error` ended the work.
  func reason(_ error: any Error, of item: BatchItem) -> any Error {
    guard case .replaced(let id) = state.withLock({ $0.entries[item.id]?.state.progress }) else { return error }
    return PipelineError(.cancelled, "replaced by item \(id), which has the same preview_key")
  }

  /// Notes an id that was refused without becoming an item.
  func refuse(_ id: String) {
    state.withLock { $0.ended.insert(id) }
  }

  /// The item has its end, and nobody works on it any more.
  func remove(_ item: BatchItem) {
    let (continuation, entry) = state.withLock { state -> (CheckedContinuation<Void, Never>?, Entry?) in
      let entry = state.entries.removeValue(forKey: item.id)
      state.ended.insert(item.id)
      if state.newest[item.key] === item { state.newest[item.key] = nil }
      guard let next = state.next, begin(next.item, in: &state) else { return (nil, entry) }
      state.next = nil
      return (next.continuation, entry)
    }
    _ = entry  // its share ends outside the lock
    item.release()
    item.finishChunks()
    continuation?.resume()
    noteChange()
  }
}

/// A set of the ids that were inserted last: of a stream of any length a bounded number.
struct RecentIDs {
  private let maxCount: Int
  private var ids: Set<String> = []
  // Oldest first.
  private var order: [String] = []

  /// - `maxCount`: above it the older half is forgotten.
  init(maxCount: Int) { self.maxCount = maxCount }

  func contains(_ id: String) -> Bool { ids.contains(id) }

  mutating func insert(_ id: String) {
    if ids.insert(id).inserted { order.append(id) }
    guard order.count > maxCount else { return }
    for forgotten in order.prefix(maxCount / 2) { ids.remove(forgotten) }
    order.removeFirst(maxCount / 2)
  }
}
