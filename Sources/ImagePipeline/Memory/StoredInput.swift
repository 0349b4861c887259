internal import ImageCodecs

/// The bytes of an image that is decoded twice, charged to its budget.
///
/// Bytes are released as the second decoder consumes them.
final class StoredInput {
  /// All bytes that were appended.
  let bytes: CompressedBytes
  /// The number of bytes that were consumed.
  private(set) var consumedByteCount: UInt64 = 0

  init(budget: ImageBudget) { bytes = CompressedBytes(limit: .max, budget: budget) }

  /// The number of bytes that were not consumed.
  var restByteCount: Int { Int(bytes.byteCount - consumedByteCount) }

  /// Calls `body` with the next bytes that were not consumed, and whether they are the last ones; there must be some.
  func withNext(_ body: (RawSpan, _ isLast: Bool) throws(CodecError) -> Void) throws(CodecError) {
    let restByteCount = restByteCount
    try bytes.withChunk(at: consumedByteCount) { (chunk) throws(CodecError) in
      try body(chunk, chunk.byteCount == restByteCount)
    }
  }

  /// Notes that bytes were consumed, and releases those before the current chunk.
  func consume(_ count: Int) {
    consumedByteCount += UInt64(count)
    bytes.release(before: consumedByteCount)
  }
}
