package import ImagePipeline
internal import Synchronization

/// Limits the memory that the unfinished uploads of each connection reserve.
///
/// An upload keeps its memory until its client has sent all bytes. Without a limit, one connection could reserve the
/// whole budget. Images whose bytes have all arrived do not count.
package final class ConnectionShares: Sendable {
  private let limit: Int
  private let byteCounts = Mutex<[String: Int]>([:])

  /// Creates the shares of a memory budget.
  ///
  /// - `memoryLimit`: the maximum memory of all images together, in bytes. A connection gets three quarters of it: the
  ///   only client of a worker hardly notices, and the rest is enough for the small images of others.
  package init(memoryLimit: Int) { limit = memoryLimit / 4 * 3 }

  /// Returns the number of bytes that a connection's unfinished uploads reserve.
  package func byteCount(of connection: String) -> Int { byteCounts.withLock { $0[connection] ?? 0 } }

  /// Adds an upload to its connection's share.
  ///
  /// The only upload of a connection may have any size.
  /// - Throws: `overloaded` if the connection's uploads would exceed its share.
  package func take(_ byteCount: Int, of connection: String) throws(PipelineError) -> ConnectionShare {
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

/// The part of a connection's share that one unfinished upload reserves; released on deinitialization.
package final class ConnectionShare: Sendable {
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
