internal import ImageCodecs

/// A compressed result that waits until it is known to be the one, as far as it can be; above its limit it is only counted.
struct CompressedBytes {
  static let chunkByteCount = 64 * 1024

  private let limit: UInt64
  private let budget: PictureBudget
  private var chunks: [PixelBuffer] = []
  private(set) var byteCount: UInt64 = 0

  init(limit: UInt64, budget: PictureBudget) {
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

  /// Lends all bytes, in portions.
  func forEach(_ body: (RawSpan) -> Void) {
    var left = Int(byteCount)
    for chunk in chunks {
      let count = min(left, Self.chunkByteCount)
      chunk.withBytes(count, body)
      left -= count
    }
  }
}
