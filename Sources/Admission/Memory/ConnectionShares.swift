package import ImagePipeline
internal import Synchronization
package import WorkThreads

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
  /// - Returns: The part of the share that the upload reserves.
  /// - Throws: `overloaded` if the connection's uploads would exceed its share.
  package func take(_ byteCount: Int, of connection: String) throws(PipelineError) -> Claim {
    let others: Int? = byteCounts.withLock { byteCounts in
      let others = byteCounts[connection] ?? 0
      guard others == 0 || byteCount <= limit - others else { return others }
      byteCounts[connection] = others + byteCount
      return nil
    }
    guard let others else { return Claim { [self] in giveBack(byteCount, of: connection) } }
    throw PipelineError(
      .overloaded,
      "the unfinished uploads of this connection reserve \(others) bytes; \(byteCount) more exceed its share of "
        + "\(limit); finish one first")
  }

  private func giveBack(_ byteCount: Int, of connection: String) {
    byteCounts.withLock { byteCounts in
      let left = (byteCounts[connection] ?? 0) - byteCount
      byteCounts[connection] = left > 0 ? left : nil
    }
  }
}
