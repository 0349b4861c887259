internal import CPixels
package import ImageCodecs

/// Merges Y, Cb and Cr planes of equal size into rows of RGB, in its own buffer.
///
/// The planes' resizers finish rows at different times. Rows wait in queues until all three planes have them.
package struct YCCMerger {
  private let width: Int
  private let output: RowBuffer
  private let queues: [RowQueue]

  // Chroma lags behind luma by the span of its wider kernel, and both arrive in portions of the rows that are read at once.
  private static let queuedPortionCount = 4

  /// Creates a merger and allocates its queues and output rows.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(width: Int, budget: ImageBudget) throws(CodecError) {
    self.width = width
    let rowByteCount = width * PixelFormat.rgb8.pixelByteCount
    let rowCount = PlaneResizer.outputRowCount(rowByteCount: rowByteCount)
    output = try RowBuffer(rowByteCount: rowByteCount, rowCount: rowCount, budget: budget)
    var queues: [RowQueue] = []
    for _ in 0..<3 {
      queues.append(
        try RowQueue(rowByteCount: width, capacity: Self.queuedPortionCount * rowCount, budget: budget))
    }
    self.queues = queues
  }

  /// Returns the number of bytes that a merger charges initially.
  package static func estimatedByteCount(width: Int) -> Int {
    let rowByteCount = width * PixelFormat.rgb8.pixelByteCount
    let rowCount = PlaneResizer.outputRowCount(rowByteCount: rowByteCount)
    return rowCount * (rowByteCount + 3 * queuedPortionCount * width)
  }

  /// Consumes some of the next rows of each plane and removes them from `planes`; read the finished rows before the
  /// next call.
  /// - Throws: `outOfMemory` if a plane runs so far ahead that the budget has no room for its waiting rows.
  package func push(_ planes: inout [Strip.Rows]) throws(CodecError) {
    for index in 0..<3 {
      let portion = planes[index].prefix(output.rowCount)
      try queues[index].append(portion)
      planes[index].dropFirst(portion.rowCount)
    }
  }

  /// Returns the next complete rows, or none; they are valid until the next call.
  package func read() -> Strip.Rows {
    let count = min(output.rowCount, queues[0].rowCount, queues[1].rowCount, queues[2].rowCount)
    guard count > 0 else { return .none }
    let (luma, blue, red) = (queues[0].take(count), queues[1].take(count), queues[2].take(count))
    for row in 0..<count {
      cpixels_ycc_to_rgb(
        luma.bytes(row), blue.bytes(row), red.bytes(row), output.bytes(row), width, CPIXELS_ISA_BEST)
    }
    return output.rows(count: count)
  }
}
