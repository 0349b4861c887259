package import ImageCodecs

extension RowBuffer {
  /// Returns this plane of 8-bit samples at half the width and half the height, rounded up.
  ///
  /// Chroma samples are centered, so each result is the mean of four samples. At odd ends the last sample counts twice.
  /// - Throws: `outOfMemory` if the budget is exhausted.
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
