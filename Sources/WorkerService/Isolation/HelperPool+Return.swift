internal import Admission
internal import ImagePipeline
internal import Synchronization
internal import WorkThreads
internal import WorkerIsolation

extension HelperPool {
  /// The outcome for a helper that was given back.
  private enum Return {
    case lent(to: Waiter<Lease?>)
    case kept
    /// It ends: it cannot be used for the image that waits next.
    case replaced
    /// The one that was not used for the longest time ends.
    case surplus(Lease)
  }

  /// Takes back a helper.
  /// - `isUsable`: whether it can work on another image of its caller; otherwise it ends.
  func giveBack(_ lease: Lease, isUsable: Bool) {
    if lease.isForUpload { state.withLock { $0.uploadCount -= 1 } }
    guard isUsable, lease.imageCount < Self.maxImageCount, lease.process.isCurrent else { return replace(lease) }
    let outcome: Return = state.withLock { state in
      if let index = state.waiting.firstIndex(where: { mayLend(isUpload: $0.isUpload, state) }) {
        let first = state.waiting[index]
        guard lease.caller == nil || lease.caller == first.caller else { return .replaced }
        state.waiting.remove(at: index)
        state.uploadCount += first.isUpload ? 1 : 0
        return .lent(to: first.waiter)
      }
      state.idle.append(lease)
      guard state.idle.count > warmCount else { return .kept }
      let oldest = state.idle.removeFirst()
      state.forget(oldest)
      return .surplus(oldest)
    }
    switch outcome {
    case .lent(let waiter): waiter.end(lease)
    case .kept: break
    case .replaced: replace(lease)
    case .surplus(let lease): lease.process.retire()
    }
  }

  /// Starts a helper instead of one that ends, if it is needed.
  private func replace(_ lease: Lease) {
    lease.process.retire()
    let isNeeded = state.withLock { state in
      state.forget(lease)
      guard state.count < warmCount || !state.waiting.isEmpty else { return false }
      state.count += 1
      return true
    }
    guard isNeeded else { return }
    do throws(PipelineError) { giveBack(try start(), isUsable: true) } catch {
      // The next image tries again; one that waits learns why.
      state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }?.waiter.end(nil)
    }
  }
}
