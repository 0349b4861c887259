package import ImageCodecs

extension RowBuffer {
  /// A plane of 8-bit samples, half as wide and half as high, rounded up.
  ///
  /// Chroma samples are centred, so those of half the size are the means of four; at odd ends the last counts twice.
  /// - Throws: `outOfMemory` when the budget has no room.
  package func halvedPlane(budget: ImageBudget) throws(CodecError) -> RowBuffer {
    let width = rowByteCount
    let half = try RowBuffer(rowByteCount: (width + 1) / 2, rowCount: (rowCount + 1) / 2, budget: budget)
    for y in 0..<half.rowCount {
      let upper = bytes(2 * y)
      let lower = bytes(min(2 * y + 1, rowCount - 1))
      let destination = half.bytes(y)
      for x in 0..<half.rowByteCount {
        let (left, right) = (2 * x, min(2 * x + 1, width - 1))
        let sum = Int(upper[left]) + Int(upper[right]) + Int(lower[left]) + Int(lower[right])
        destination[x] = UInt8((sum + 2) >> 2)
      }
    }
    return half
  }
}
