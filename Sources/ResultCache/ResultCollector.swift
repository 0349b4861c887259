internal import Synchronization

/// Takes a result's bytes while they are made, and puts them into the cache when they are complete.
///
/// What it holds counts against the cache's memory. A result that is too large for that is let go of, and is not
/// kept; whoever makes it need not care. One that is given up before `keep` hands its work to whoever waits for it.
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

  /// Takes the next bytes of the result.
  package func append(_ chunk: [UInt8]) {
    guard isCollecting else { return }
    let cost = CachedResult.cost(of: chunk)
    guard cache.reserve(cost, beside: state.withLock { $0.cost }) else { return letGo() }
    state.withLock { state in
      state.chunks.append(chunk)
      state.cost += cost
    }
  }

  /// The result is complete; this is what is to be said of it.
  package func seal(metadata: [UInt8]) {
    guard isCollecting else { return }
    let cost = CachedResult.cost(of: metadata)
    guard cache.reserve(cost, beside: state.withLock { $0.cost }) else { return letGo() }
    state.withLock { state in
      state.phase = .sealed(metadata: metadata)
      state.cost += cost
    }
  }

  /// Keeps a sealed result in memory, and gives it to all who wait for it.
  ///
  /// One that is not sealed, or was kept before, stays as it is.
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

  /// Writes a kept result to the disk cache, if there is one; blocks while it does.
  package func persist() {
    let kept: (CacheKey, CachedResult)? = state.withLock { state in
      guard case .kept(let key, let result) = state.phase else { return nil }
      state.phase = .over
      return (key, result)
    }
    if let (key, result) = kept { cache.disk?.write(result, for: key) }
  }

  /// There is no result, and would be none for anybody else: those who wait get the error too.
  package func fail(_ error: any Error) {
    guard end() else { return }
    if let flight { cache.settle(flight, with: .failure(error)) }
  }

  /// There is no result, for a reason that others need not meet: one of those who wait begins anew.
  package func giveUp() {
    guard end() else { return }
    if let flight { cache.handOver(flight) }
  }

  /// Bytes go to the caller, who may be slow to take them; those who wait look whether it has ended.
  package func beginSending() { if let flight { cache.noteSending(flight, isSending: true) } }
  package func endSending() { if let flight { cache.noteSending(flight, isSending: false) } }

  private var isCollecting: Bool {
    state.withLock { state in if case .collecting = state.phase { true } else { false } }
  }

  /// The result is too large to be kept: those who wait must make it themselves.
  private func letGo() {
    guard end() else { return }
    if let flight { cache.settle(flight, with: .success(.alone)) }
  }

  /// - Returns: whether this is what ended it.
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
