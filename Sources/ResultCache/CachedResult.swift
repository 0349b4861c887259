/// A complete result in the cache.
package struct CachedResult: Sendable {
  /// Information about the result that the cache's owner stores with it; the cache does not interpret it.
  package let metadata: [UInt8]
  /// The bytes of the result, in the portions in which they are sent.
  package let chunks: [[UInt8]]

  package init(metadata: [UInt8], chunks: [[UInt8]]) {
    self.metadata = metadata
    self.chunks = chunks
  }

  /// The memory overhead of a block in bytes: its header, its array element, and rounding.
  static let blockOverhead = 64

  /// The memory that the result uses, in bytes.
  var cost: Int { chunks.reduce(Self.cost(of: metadata)) { $0 + Self.cost(of: $1) } }

  static func cost(of block: [UInt8]) -> Int { block.count + blockOverhead }
}
