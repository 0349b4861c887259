internal import Admission
internal import Fields
internal import ImagePipeline
internal import Synchronization
internal import WorkThreads

/// The items of one batch stream and their states, protected by one lock.
///
/// The table never calls out, resumes or finishes anything while it holds the lock. Only one caller at a time may begin
/// items.
final class ItemTable: Sendable {
  /// The item that a part's id refers to.
  enum Standing {
    /// No earlier part had this id.
    case unknown
    case uploading(BatchItem)
    /// The upload was ended before its last byte.
    case stopping
    /// All bytes have arrived and the item is being processed.
    case working
    /// The item has ended or was refused.
    ///
    /// Parts that were sent before its client knew are not an error.
    case ended
  }

  private struct Entry {
    let item: BatchItem
    var state: ItemState
    /// The share of an upload that has memory and whose bytes are still arriving.
    var share: Claim?
    /// Whether the item has a process or waits for one.
    var usesProcess = false
    /// Whether the item, whose bytes have all arrived, waits for memory or a process, or has waited.
    var mayWait = false
  }

  private struct State {
    /// Items in progress, by id.
    var entries: [Exact<String>: Entry] = [:]
    var ended = RecentIDs(maxCount: ItemTable.rememberedCount)
    /// The newest item of each `preview_key`, until that item has ended.
    var newest: [Exact<String>: BatchItem] = [:]
    /// The next item, if it waits for room.
    var next: (item: BatchItem, waiter: Waiter<Void>)?
  }

  /// The number of ended items to remember, to distinguish a late part from an invalid one.
  static let rememberedCount = 8192

  private let maxOpenUploads: Int
  private let maxWholeImages: Int
  private let state = Mutex(State())
  private let changes = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

  /// Creates the table of one stream.
  /// - Parameters:
  ///   - maxOpenUploads: The maximum number of open uploads, and also of replaced items that have not ended.
  ///   - maxWholeImages: The maximum number of images in progress that arrived in one part.
  init(maxOpenUploads: Int, maxWholeImages: Int) {
    self.maxOpenUploads = maxOpenUploads
    self.maxWholeImages = maxWholeImages
  }

  /// Yields whenever an item has ended.
  ///
  /// Supports one consumer.
  var itemEnds: AsyncStream<Void> { changes.stream }

  /// Makes `itemEnds` yield.
  func noteChange() { changes.continuation.yield() }

  /// Whether no item is in progress or waits to begin.
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

  /// Whether another upload may be opened.
  /// - `key`: an open item with this key would be replaced and is not counted.
  func hasRoomForUpload(replacing key: String) -> Bool {
    state.withLock { state in
      let replaced = state.newest[key]
      return state.entries.values.count { $0.state.isOpen && $0.item !== replaced } < maxOpenUploads
    }
  }

  /// Begins an item and replaces an unfinished item with the same key.
  ///
  /// Waits while the maximum number of whole images is in progress, and while too many replaced items have not ended:
  /// their errors must still be sent, and a client that does not read them could otherwise create any number.
  ///
  /// - Returns: Whether it has waited.
  @discardableResult
  func begin(_ item: BatchItem) async -> Bool {
    if let replaced = replaceNewest(with: item) {
      replaced.cancellation.cancel()
      replaced.finishChunks()
    }
    let waiter: Waiter<Void>? = state.withLock { state in
      if begin(item, in: &state) { return nil }
      let waiter = Waiter<Void>()
      state.next = (item, waiter)
      return waiter
    }
    await waiter?.outcome()
    return waiter != nil
  }

  private func replaceNewest(with item: BatchItem) -> BatchItem? {
    guard !item.key.isEmpty else { return nil }
    return state.withLock { state in
      let replaced = state.newest.updateValue(item, forKey: Exact(wrappedValue: item.key))
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

  /// Records that the upload's last byte has arrived.
  func complete(_ item: BatchItem) {
    let (isNews, share) = state.withLock { state in
      (state.entries[item.id]?.state.complete() ?? false, state.entries[item.id]?.share.take())
    }
    // The item no longer depends on its client, so its share ends here, outside the lock.
    _ = share
    if isNews { item.finishChunks() }
  }

  /// Whether all bytes of the item have arrived.
  func isComplete(_ item: BatchItem) -> Bool {
    state.withLock { $0.entries[item.id]?.state.progress == .working }
  }

  /// Whether the item may wait for memory.
  ///
  /// An upload whose bytes are still arriving is then recorded as waiting.
  ///
  /// A waiting upload is not read and blocks the stream behind it. Another upload of the same stream that already has
  /// memory could then never finish, because its next bytes are queued behind those of the waiting one: a deadlock.
  /// Therefore at most one unfinished upload of a stream waits, and only while no other has memory.
  func mayWaitForMemory(_ item: BatchItem) -> Bool {
    state.withLock { state in
      guard state.entries[item.id]?.state.isUploading ?? false else { return true }
      guard !state.entries.values.contains(where: \.state.needsStream) else { return false }
      state.entries[item.id]?.state.set(.waiting)
      return true
    }
  }

  /// Records that an upload uses a process, and returns whether it may wait for one.
  ///
  /// As for memory, an unfinished upload waits only while no other of its stream has a process or waits for one.
  func mayWaitForProcess(_ item: BatchItem) -> Bool {
    state.withLock { state in
      guard state.entries[item.id]?.state.isUploading ?? false else { return true }
      let isOther = state.entries.values.contains { $0.usesProcess && $0.state.isUploading && $0.item !== item }
      state.entries[item.id]?.usesProcess = true
      return !isOther
    }
  }

  /// Whether an item whose bytes arrived in one part may wait for memory or a process.
  ///
  /// Once as many such items as possible wait, the next one blocks the stream. What they wait for may belong to an upload
  /// whose bytes are behind it, so that one fewer may wait while there is such an upload.
  func mayWait(_ item: BatchItem) -> Bool {
    state.withLock { state in
      let needsStream = state.entries.values.contains { $0.state.needsStream || $0.usesProcess && $0.state.isUploading }
      let waitingCount = state.entries.values.count { $0.mayWait && $0.item !== item }
      guard !needsStream || waitingCount < maxWholeImages - 1 else { return false }
      state.entries[item.id]?.mayWait = true
      return true
    }
  }

  /// Records whether an upload has memory, and keeps its share until its last byte has arrived.
  func note(_ memory: ItemState.UploadMemory, of item: BatchItem, share: Claim? = nil) {
    let earlier = state.withLock { state -> Claim? in
      state.entries[item.id]?.state.set(memory)
      guard state.entries[item.id]?.state.isOpen ?? false else { return nil }
      defer { state.entries[item.id]?.share = share }
      return state.entries[item.id]?.share.take()
    }
    _ = earlier  // released outside the lock
  }

  /// Ends the input of an upload that waited too long.
  func stopUpload(_ id: String) {
    state.withLock { $0.entries[id]?.item }?.finishChunks()
  }

  /// Ends the input of all uploads, because no further part will arrive.
  func finishUploads() {
    let items = state.withLock { $0.entries.values.filter(\.state.isOpen).map(\.item) }
    for item in items { item.finishChunks() }
  }

  // MARK: Ending

  /// Claims the right to send the item's only end.
  /// - Returns: Whether the caller must send it; `false` if another caller was first.
  func claimEnd(of item: BatchItem) -> Bool {
    state.withLock { $0.entries[item.id]?.state.claimEnd() ?? false }
  }

  /// Whether the item has not ended.
  func isActive(_ item: BatchItem) -> Bool {
    state.withLock { if case .active = $0.entries[item.id]?.state { true } else { false } }
  }

  /// Returns the error to report if `error` ended the item's work.
  func reason(_ error: any Error, of item: BatchItem) -> any Error {
    guard case .replaced(let id) = state.withLock({ $0.entries[item.id]?.state.progress }) else { return error }
    return PipelineError(.cancelled, "replaced by item \(id), which has the same preview_key")
  }

  /// Records an id that was refused without becoming an item.
  func refuse(_ id: String) {
    state.withLock { $0.ended.insert(id) }
  }

  /// Removes an item that has ended and is no longer processed.
  func remove(_ item: BatchItem) {
    let (waiter, entry) = state.withLock { state -> (Waiter<Void>?, Entry?) in
      let entry = state.entries.removeValue(forKey: Exact(wrappedValue: item.id))
      state.ended.insert(item.id)
      if state.newest[item.key] === item { state.newest[item.key] = nil }
      guard let next = state.next, begin(next.item, in: &state) else { return (nil, entry) }
      state.next = nil
      return (next.waiter, entry)
    }
    _ = entry  // the share is released outside the lock
    item.release()
    item.finishChunks()
    waiter?.end(())
    noteChange()
  }
}

/// The most recently inserted ids, as hashes of 8 bytes: clients choose ids of up to 256 bytes and how long a stream lasts.
struct RecentIDs {
  private let maxCount: Int
  private var hashes: [Int] = []
  /// The place of the oldest one, once there are `maxCount`.
  private var oldest = 0

  /// Creates an empty set of at most `maxCount` ids, of which the oldest are forgotten.
  init(maxCount: Int) { self.maxCount = maxCount }

  func contains(_ id: String) -> Bool { hashes.contains(Self.hash(id)) }

  mutating func insert(_ id: String) {
    guard !contains(id) else { return }
    guard hashes.count == maxCount else { return hashes.append(Self.hash(id)) }
    hashes[oldest] = Self.hash(id)
    oldest = (oldest + 1) % maxCount
  }

  private static func hash(_ id: String) -> Int { Exact(wrappedValue: id).hashValue }
}
