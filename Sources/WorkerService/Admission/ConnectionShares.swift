internal import ImagePipeline
internal import Synchronization

/// The memory that the unfinished uploads of each connection reserve, of which there is a maximum.
///
/// An upload whose bytes still arrive keeps its memory for as long as its client likes to send: without a maximum, one
/// connection could take all there is. Images that have come whole do not count.
package final class ConnectionShares: Sendable {
  private let limit: Int
  private let byteCounts = Mutex<[String: Int]>([:])

  /// - `memoryLimit`: what all images together may reserve. A connection gets three quarters: the only client of a worker
  ///   hardly notices, and the rest is enough for the small images of others.
  init(memoryLimit: Int) { limit = memoryLimit / 4 * 3 }

  /// The bytes that count for a connection now.
  package func byteCount(of connection: String) -> Int { byteCounts.withLock { $0[connection] ?? 0 } }

  /// Counts one more upload, of any size where it is the connection's only one.
  /// - Throws: `overloaded` where the connection's uploads reserve too much.
  func take(_ byteCount: Int, of connection: String) throws(PipelineError) -> ConnectionShare {
    let others: Int? = byteCounts.withLock { byteCounts in
      let others = byteCounts[connection] ?? 0
      guard others == 0 || byteCount <= limit - others else { return others }
      byteCounts[connection] = others + byteCount
      return nil
    }
    guard let others else { return ConnectionShare(byteCount: byteCount, connection: connection, shares: self) }
    throw PipelineError(
      .overloaded,
      "the unfinished uploads of this connection reserve \(others) bytes; \(byteCount) more exceed its share of "
        + "\(limit); finish one first")
  }

  fileprivate func giveBack(_ byteCount: Int, of connection: String) {
    byteCounts.withLock { byteCounts in
      let left = (byteCounts[connection] ?? 0) - byteCount
      byteCounts[connection] = left > 0 ? left : nil
    }
  }
}

/// What one unfinished upload takes of its connection's share; given back when it ends.
final class ConnectionShare: Sendable {
  private let byteCount: Int
  private let connection: String
  private let shares: ConnectionShares

  fileprivate init(byteCount: Int, connection: String, shares: ConnectionShares) {
    self.byteCount = byteCount
    self.connection = connection
    self.shares = shares
  }

  deinit { shares.giveBack(byteCount, of: connection) }
}
