internal import Synchronization
internal import WorkThreads

/// Counts the open connections, in all and of each peer, and limits them.
package final class ConnectionCount: Sendable {
  private struct State {
    var openCount = 0
    var refusedCount: UInt64 = 0
    var closedCount: UInt64 = 0
    var peers: [String: Int] = [:]
  }

  private let limit: Int
  private let limitPerPeer: Int
  private let state = Mutex(State())

  /// Creates a count of at most `limit` connections, of which `limitPerPeer` come from one address.
  package init(limit: Int, perPeer limitPerPeer: Int) {
    self.limit = limit
    self.limitPerPeer = limitPerPeer
  }

  /// The number of open connections.
  package var openCount: Int { state.withLock { $0.openCount } }
  /// The number of connections that were refused since the process started.
  package var refusedCount: UInt64 { state.withLock { $0.refusedCount } }

  /// The number of connections that were counted and closed since the process started.
  package var closedCount: UInt64 { state.withLock { $0.closedCount } }

  /// Counts a connection until its claim ends; returns `nil` if there are too many.
  func open(_ peer: String) -> Claim? {
    let isOpen = state.withLock { state in
      guard state.openCount < limit, state.peers[peer, default: 0] < limitPerPeer else {
        state.refusedCount += 1
        return false
      }
      state.openCount += 1
      state.peers[peer, default: 0] += 1
      return true
    }
    return isOpen ? Claim { [self] in close(peer) } : nil
  }

  /// Counts a connection that was refused for another reason.
  func noteRefused() { state.withLock { $0.refusedCount += 1 } }

  private func close(_ peer: String) {
    state.withLock { state in
      state.openCount -= 1
      state.closedCount += 1
      let left = (state.peers[peer] ?? 0) - 1
      state.peers[peer] = left > 0 ? left : nil
    }
  }
}
