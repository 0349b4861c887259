/// The bytes in the shared input of a helper that it has not consumed.
struct SuppliedBytes {
  private var range = 0..<0
  /// Whether the supplied bytes filled the input, so that more may be there.
  private var isFull = false
  /// Whether no bytes follow in the image.
  var areLast = false

  var offset: Int { range.lowerBound }
  var count: Int { range.count }

  /// The number of bytes to process with the start: whole windows if more bytes may follow.
  var startByteCount: Int { areLast || !isFull ? count : count - count % SourceWindows.byteCount }

  /// Notes that the input now begins with `byteCount` other bytes.
  /// - `isFull`: whether they fill the input.
  mutating func replace(byteCount: Int, isFull: Bool) {
    range = 0..<byteCount
    self.isFull = isFull
  }

  /// Notes that some of the bytes were consumed; `nil` for all.
  /// - Returns: Their number.
  mutating func consume(_ byteCount: Int?) -> Int {
    let consumed = min(byteCount ?? count, count)
    range = range.dropFirst(consumed)
    return consumed
  }
}
