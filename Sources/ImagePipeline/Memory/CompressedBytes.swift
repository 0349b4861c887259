internal import ImageCodecs

/// A compressed result that waits until it is known to be the one, as far as it can be; above its limit it is only counted.
struct CompressedBytes {
  static let chunkByteCount = 64 * 1024

  private let limit: UInt64
  private let budget: ImageBudget
  private var chunks: [PixelBuffer] = []
  private(set) var byteCount: UInt64 = 0

  init(limit: UInt64, budget: ImageBudget) {
    self.limit = limit
    self.budget = budget
  }

  var fits: Bool { byteCount <= limit }

  mutating func append(_ bytes: RawSpan) throws(PipelineError) {
    let first = byteCount
    byteCount += UInt64(bytes.byteCount)
    guard fits else {
      chunks = []
      return
    }
    var rest = bytes
    var offset = Int(first % UInt64(Self.chunkByteCount))
    while !rest.isEmpty {
      if offset == 0 {
        let budget = budget
        chunks.append(
          try withCodecErrors { () throws(CodecError) in
            try PixelBuffer(byteCount: Self.chunkByteCount, budget: budget)
          })
      }
      let count = min(rest.byteCount, Self.chunkByteCount - offset)
      chunks[chunks.count - 1].write(rest.extracting(first: count), at: offset)
      rest = rest.extracting(droppingFirst: count)
      offset = (offset + count) % Self.chunkByteCount
    }
  }

  /// Lends the chunk that begins at `offset`, a multiple of `chunkByteCount`; returns its size.
  func withChunk(at offset: UInt64, _ body: (RawSpan) -> Void) -> Int {
    let count = min(Int(byteCount - offset), Self.chunkByteCount)
    chunks[Int(offset) / Self.chunkByteCount].withBytes(count, body)
    return count
  }
}
