internal import ResultCache
internal import Synchronization

/// The results of one helper that are in the cache.
///
/// They are removed when the helper is lost, because a hostile image may have taken it over before it produced them.
final class KeptResults: Sendable {
  private struct State {
    var entries: [(cache: ResultCache, keys: [CacheKey])] = []
    var isRevoked = false
  }

  private let state = Mutex(State())

  /// Records that results are in a cache, and removes them if the helper was lost meanwhile.
  func note(_ keys: [CacheKey], in cache: ResultCache) {
    let isRevoked = state.withLock { state in
      if !state.isRevoked { state.entries.append((cache, keys)) }
      return state.isRevoked
    }
    if isRevoked { cache.remove(keys) }
  }

  /// Removes the results from the cache, and those that follow.
  func revoke() {
    let entries = state.withLock { state in
      state.isRevoked = true
      defer { state.entries = [] }
      return state.entries
    }
    for (cache, keys) in entries { cache.remove(keys) }
  }
}
