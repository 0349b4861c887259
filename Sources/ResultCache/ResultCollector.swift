internal import Synchronization
internal import WorkThreads

/// A collector of a result's bytes, which adds the result to the cache when it is complete.
///
/// The collected bytes count against the cache's memory limit. A result that is too large is discarded and not cached;
/// the producer does not need to check. If a collector is abandoned before `keep`, the first waiter becomes the leader.
package final class ResultCollector: Sendable {
  private enum Phase {
    case collecting, sealed(metadata: [UInt8]), kept(CacheKey, CachedResult), over
  }

  private struct State {
    var phase = Phase.collecting
    var chunks: [[UInt8]] = []
    var cost = 0
  }

  private let cache: ResultCache
  /// The key for which others may wait.
  private let flight: CacheKey?
  private let state = Mutex(State())

  init(cache: ResultCache, flight: CacheKey?) {
    self.cache = cache
    self.flight = flight
  }

  deinit { giveUp() }

  /// Adds the next bytes of the result.
  package func append(_ chunk: [UInt8]) { add(chunk) { $0.chunks.append(chunk) } }

  /// Completes the result and attaches its metadata.
  package func seal(metadata: [UInt8]) { add(metadata) { $0.phase = .sealed(metadata: metadata) } }

  /// Adds a block with `change`, or discards the result if there is no memory for it.
  private func add(_ block: [UInt8], _ change: (inout State) -> Void) {
    guard isCollecting else { return }
    let cost = CachedResult.cost(of: block)
    guard cache.reserve(cost, beside: state.withLock { $0.cost }) else { return letGo() }
    state.withLock { state in
      change(&state)
      state.cost += cost
    }
  }

  /// Stores a sealed result in memory, and passes it to all waiters.
  ///
  /// It does nothing if the result is not sealed, or is already stored.
  package func keep(as key: CacheKey) {
    let kept: (result: CachedResult, cost: Int)? = state.withLock { state in
      guard case .sealed(let metadata) = state.phase else { return nil }
      let result = CachedResult(metadata: metadata, chunks: state.chunks)
      state.phase = .kept(key, result)
      state.chunks = []
      return (result, state.cost)
    }
    if let kept { cache.keep(kept.result, for: key, reserved: kept.cost) }
  }

  /// Writes a stored result to the disk cache, if there is one, and blocks meanwhile.
  package func persist() {
    let kept: (CacheKey, CachedResult)? = state.withLock { state in
      guard case .kept(let key, let result) = state.phase else { return nil }
      state.phase = .over
      return (key, result)
    }
    if let (key, result) = kept { cache.disk?.write(result, for: key) }
  }

  /// Ends the request with an error that would affect every caller; all waiters receive the error too.
  package func fail(_ error: any Error) {
    guard end() else { return }
    if let flight { cache.settle(flight, with: .failure(error)) }
  }

  /// Ends the request without a result, for a reason that does not affect others; the first waiter becomes the leader.
  package func giveUp() {
    guard end() else { return }
    if let flight { cache.state.withLock { $0.promote(of: flight) }?.end(.success(.lead)) }
  }

  /// Records that a message is being sent, which a slow client may delay, or has been sent, so that waiters can time out.
  package func noteSending(_ isSending: Bool) {
    if let flight { cache.state.withLock { $0.noteSending(flight, isSending: isSending) } }
  }

  private var isCollecting: Bool {
    state.withLock { state in if case .collecting = state.phase { true } else { false } }
  }

  /// Discards a result that is too large to cache; each waiter must produce its own.
  private func letGo() {
    guard end() else { return }
    if let flight { cache.settle(flight, with: .success(.bypass)) }
  }

  /// Ends the collection and releases its memory.
  /// - Returns: whether this call ended it.
  private func end() -> Bool {
    let cost: Int? = state.withLock { state in
      switch state.phase {
      case .collecting, .sealed: break
      case .kept, .over: return nil
      }
      defer { state = State(phase: .over) }
      return state.cost
    }
    guard let cost else { return false }
    cache.release(cost)
    return true
  }
}
