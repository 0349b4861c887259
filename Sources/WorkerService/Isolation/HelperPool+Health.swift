internal import ImagePipeline
internal import Synchronization
internal import WorkerIsolation

extension HelperPool {
  /// Replaces the process that forks helpers, and the idle helpers that it has forked, if it is stopped or has ended.
  ///
  /// Otherwise, the next image that needs another helper would find out. Helpers that work on images continue if the
  /// process is only stopped.
  ///
  /// - Returns: Whether it was replaced.
  package func replaceLostZygote() -> Bool {
    guard zygote.replaceIfLost() else { return false }
    let old = state.withLock { state in
      let old = state.idle.filter { !$0.process.isCurrent || !$0.process.isReady }
      state.idle.removeAll { lease in old.contains { $0.process === lease.process } }
      for lease in old { state.forget(lease) }
      return old
    }
    for lease in old {
      if !lease.process.isReady { lease.kept.revoke() }
      lease.process.retire()
    }
    // If that fails, the next image tries again and reports why.
    try? warmUp()
    return true
  }
}
