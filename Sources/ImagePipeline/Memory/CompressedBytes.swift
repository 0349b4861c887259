internal import ImageCodecs

/// Compressed bytes that are buffered: those of a result until it is chosen or rejected, or of an image that is decoded
/// twice; above their limit, they are only counted.
///
/// It is a class so that a search and the stage that emits its result never copy it.
final class CompressedBytes {
  /// The size of a buffer chunk in bytes.
  static let chunkByteCount = 64 * 1024

  private let limit: UInt64
  private let budget: ImageBudget
  private var chunks: [PixelBuffer?] = []
  private var releasedCount = 0
  /// The number of bytes that were appended, including those above the limit.
  private(set) var byteCount: UInt64 = 0
  /// The number of bytes that were consumed.
  private(set) var consumedByteCount: UInt64 = 0

  init(limit: UInt64, budget: ImageBudget) {
    self.limit = limit
    self.budget = budget
  }

  /// Whether the bytes do not exceed the limit.
  var fits: Bool { byteCount <= limit }

  /// The number of bytes that are charged.
  var chargedByteCount: Int { (chunks.count - releasedCount) * Self.chunkByteCount }

  /// Appends bytes; discards all of them once the limit is exceeded.
  func append(_ bytes: RawSpan) throws(PipelineError) {
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
      chunks[chunks.count - 1]?.write(rest.extracting(first: count), at: offset)
      rest = rest.extracting(droppingFirst: count)
      offset = (offset + count) % Self.chunkByteCount
    }
  }

  /// Calls `body` with the bytes from `offset` to the end of their chunk.
  /// - Returns: The number of these bytes.
  @discardableResult
  func withChunk<Failure: Error>(
    at offset: UInt64, _ body: (RawSpan) throws(Failure) -> Void
  ) throws(Failure) -> Int {
    let (index, start) = Int(offset).quotientAndRemainder(dividingBy: Self.chunkByteCount)
    let count = min(Int(byteCount - offset), Self.chunkByteCount - start)
    try chunks[index]?.withBytes(start + count) { (bytes) throws(Failure) in
      try body(bytes.extracting(droppingFirst: start))
    }
    return count
  }

  /// Calls `body` with each chunk in order, and whether it is the last one.
  func forEachChunk(_ body: (RawSpan, _ isLast: Bool) throws(PipelineError) -> Void) throws(PipelineError) {
    for (index, chunk) in chunks.enumerated() {
      let rest = byteCount - UInt64(index * Self.chunkByteCount)
      try chunk?.withBytes(Int(min(rest, UInt64(Self.chunkByteCount)))) { (bytes) throws(PipelineError) in
        try body(bytes, index == chunks.count - 1)
      }
    }
  }

  /// The number of bytes that were not consumed.
  var restByteCount: Int { Int(byteCount - consumedByteCount) }

  /// Notes that bytes were consumed, and frees the chunks before the current one, which must not be read any more.
  func consume(_ count: Int) {
    consumedByteCount += UInt64(count)
    let end = min(Int(consumedByteCount) / Self.chunkByteCount, chunks.count)
    for index in releasedCount..<end { chunks[index] = nil }
    releasedCount = end
  }
}
