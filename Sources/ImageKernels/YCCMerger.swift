internal import CPixels
package import ImageCodecs

/// Merges planes of Y, Cb and Cr of one size to rows of RGB, in a buffer of its own.
///
/// The planes' filters finish rows at different times; only rows that all three have can be merged, the others wait.
package struct YCCMerger {
  private let width: Int
  private let output: RowBuffer
  private let queues: [RowQueue]

  private static let rowCount = 16
  // Chroma lags behind luma by what its wider filter spans, and both come in portions of rowCount.
  private static let queuedRowCount = 64

  /// - Throws: `outOfMemory` when the budget has no room.
  package init(width: Int, budget: ImageBudget) throws(CodecError) {
    self.width = width
    output = try RowBuffer(
      rowByteCount: width * PixelFormat.rgb8.pixelByteCount, rowCount: Self.rowCount, budget: budget)
    var queues: [RowQueue] = []
    for _ in 0..<3 {
      queues.append(try RowQueue(rowByteCount: width, capacity: Self.queuedRowCount, budget: budget))
    }
    self.queues = queues
  }

  /// What it charges.
  package static func estimatedByteCount(width: Int) -> Int {
    width * (PixelFormat.rgb8.pixelByteCount * rowCount + 3 * queuedRowCount)
  }

  /// Takes some of the next rows of each plane, which are left out of `planes`; read what is ready before the next call.
  /// - Throws: `outOfMemory` when a plane runs so far ahead that the budget has no room for what waits.
  package func push(_ planes: inout [Strip.Rows]) throws(CodecError) {
    for index in 0..<3 {
      let portion = planes[index].prefix(Self.rowCount)
      try queues[index].append(portion)
      planes[index].dropFirst(portion.rowCount)
    }
  }

  /// The next rows that are complete, or none; valid until the next call.
  package func read() -> Strip.Rows {
    let count = min(Self.rowCount, queues[0].rowCount, queues[1].rowCount, queues[2].rowCount)
    guard count > 0 else { return .none }
    let (luma, blue, red) = (queues[0].take(count), queues[1].take(count), queues[2].take(count))
    for row in 0..<count {
      cpixels_ycc_to_rgb(
        luma.bytes(row), blue.bytes(row), red.bytes(row), output.bytes(row), width, CPIXELS_ISA_BEST)
    }
    return output.rows(count: count)
  }
}
