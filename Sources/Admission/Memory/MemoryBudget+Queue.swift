internal import WorkThreads

/// The queue of images that wait for memory.
extension MemoryBudget.State {
  enum Outcome {
    case taken(MemoryBudget.Admission)
    case full
    case wait(Waiter<MemoryBudget.Admission?>)
  }

  private func fits(_ entry: MemoryBudget.Entry, limit: Int) -> Bool {
    used == 0 || (entry.byteCount <= limit - used - buffered && leavesRoom(entry, limit: limit))
  }

  /// Whether uploads leave a quarter of the memory to images that depend on no client; the only upload need not.
  private func leavesRoom(_ entry: MemoryBudget.Entry, limit: Int) -> Bool {
    !entry.isUpload || uploading == 0 || entry.byteCount <= limit / 4 * 3 - uploading
  }

  private mutating func add(_ entry: MemoryBudget.Entry) {
    used += entry.byteCount
    if entry.isUpload { uploading += entry.byteCount }
    peak = max(peak, used)
  }

  mutating func take(_ byteCount: Int, isUpload: Bool, limit: Int, maxWaiting: Int) -> Outcome {
    let entry = MemoryBudget.Entry(byteCount: byteCount, isUpload: isUpload)
    if let admission = admit(entry, limit: limit) { return .taken(admission) }
    guard waiting.count < maxWaiting else { return .full }
    waiting.append(entry)
    return .wait(entry.waiter)
  }

  /// Reserves memory for an image that is not in the queue, if there is room.
  private mutating func admit(_ entry: MemoryBudget.Entry, limit: Int) -> MemoryBudget.Admission? {
    if let first = waiting.first { return pass(entry, by: first, limit: limit) ? .passing : nil }
    guard fits(entry, limit: limit) else { return nil }
    add(entry)
    return .inTurn
  }

  /// Reserves memory ahead of the head of the queue if this does not delay it.
  ///
  /// An upload at the head that waits for the clients of others holds back uploads, and no image whose bytes have arrived.
  private mutating func pass(_ entry: MemoryBudget.Entry, by head: MemoryBudget.Entry, limit: Int) -> Bool {
    let byteCount = entry.byteCount
    let delays =
      leavesRoom(head, limit: limit)
      ? byteCount > limit - buffered - passed - head.byteCount || !leavesRoom(entry, limit: limit) : entry.isUpload
    guard !delays, byteCount <= limit - used - buffered else { return false }
    add(entry)
    passed += byteCount
    return true
  }

  /// Reserves memory for waiting images that now fit, and removes them from the queue.
  mutating func admitWaiters(limit: Int) -> [(MemoryBudget.Entry, MemoryBudget.Admission)] {
    var admitted: [(MemoryBudget.Entry, MemoryBudget.Admission)] = []
    while let next = waiting.first, fits(next, limit: limit) {
      add(next)
      admitted.append((waiting.removeFirst(), .inTurn))
    }
    guard let first = waiting.first else { return admitted }
    var index = 1
    while index < waiting.count {
      if pass(waiting[index], by: first, limit: limit) {
        admitted.append((waiting.remove(at: index), .passing))
      } else {
        index += 1
      }
    }
    return admitted
  }
}
