/// A complete result as it is kept.
package struct CachedResult: Sendable {
  /// What the owner of the cache says of the result; the cache does not look at it.
  package let metadata: [UInt8]
  /// The result's bytes, in portions as they are sent.
  package let chunks: [[UInt8]]

  package init(metadata: [UInt8], chunks: [[UInt8]]) {
    self.metadata = metadata
    self.chunks = chunks
  }

  /// What a block costs beside its bytes: its header, its place in a list, and rounding.
  static let blockOverhead = 64

  /// Bytes of memory that the result takes.
  var cost: Int { chunks.reduce(Self.cost(of: metadata)) { $0 + Self.cost(of: $1) } }

  static func cost(of block: [UInt8]) -> Int { block.count + blockOverhead }
}
