internal import ImageCodecs

/// The bytes of an image that is decoded twice, charged to its budget.
///
/// Bytes are released as the second decoder consumes them.
final class StoredInput {
  private static let chunkByteCount = 64 * 1024

  private let budget: ImageBudget
  private var chunks: [PixelBuffer?] = []
  /// The number of bytes that were appended.
  private(set) var byteCount = 0
  /// The number of bytes that were consumed.
  private(set) var consumedByteCount = 0

  init(budget: ImageBudget) { self.budget = budget }

  /// The number of bytes that were not consumed.
  var restByteCount: Int { byteCount - consumedByteCount }

  /// The number of bytes that are charged.
  var chargedByteCount: Int { chunks.count { $0 != nil } * Self.chunkByteCount }

  /// Appends bytes.
  /// - Throws: `limitExceeded` if the budget is exhausted.
  func append(_ bytes: RawSpan) throws(PipelineError) {
    var rest = bytes
    while !rest.isEmpty {
      let offset = byteCount % Self.chunkByteCount
      if offset == 0 {
        let budget = budget
        chunks.append(
          try withCodecErrors { () throws(CodecError) in
            try PixelBuffer(byteCount: Self.chunkByteCount, budget: budget)
          })
      }
      let count = min(rest.byteCount, Self.chunkByteCount - offset)
      chunks[chunks.count - 1]?.write(rest.extracting(first: count), at: offset)
      byteCount += count
      rest = rest.extracting(droppingFirst: count)
    }
  }

  /// Calls `body` with the next bytes that were not consumed, and whether they are the last ones; there must be some.
  func withNext(_ body: (RawSpan, _ isLast: Bool) throws(CodecError) -> Void) throws(CodecError) {
    let (index, start) = consumedByteCount.quotientAndRemainder(dividingBy: Self.chunkByteCount)
    let end = min(byteCount - index * Self.chunkByteCount, Self.chunkByteCount)
    let isLast = index == chunks.count - 1
    try chunks[index]?.withBytes(end) { (bytes) throws(CodecError) in
      try body(bytes.extracting(droppingFirst: start), isLast)
    }
  }

  /// Calls `body` with all bytes, in order, and whether they are the last ones; none must be consumed.
  func forEach(_ body: (RawSpan, _ isLast: Bool) throws(PipelineError) -> Void) throws(PipelineError) {
    for (index, chunk) in chunks.enumerated() {
      let end = min(byteCount - index * Self.chunkByteCount, Self.chunkByteCount)
      try chunk?.withBytes(end) { (bytes) throws(PipelineError) in try body(bytes, index == chunks.count - 1) }
    }
  }

  /// Notes that bytes were consumed, and releases those before the current chunk.
  func consume(_ count: Int) {
    let first = consumedByteCount / Self.chunkByteCount
    consumedByteCount += count
    for index in first..<max(first, min(consumedByteCount / Self.chunkByteCount, chunks.count)) { chunks[index] = nil }
  }
}
