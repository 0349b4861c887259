internal import CPixels
package import ImageCodecs

/// A filter that replaces each level of red, green and blue, or of gray, by its entry in a table; alpha does not change.
package final class LevelFilter: RowFilter {
  private let table: [UInt8]
  private let width: Int
  private let channelCount: UInt32
  private let output: RowBuffer
  private var readyCount = 0

  /// Creates a filter and allocates its output rows.
  /// - `table`: 256 levels.
  /// - `format`: `gray8`, `rgb8` or `rgba8`.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(table: [UInt8], width: Int, format: PixelFormat, budget: ImageBudget) throws(CodecError) {
    precondition(table.count == 256)
    self.table = table
    self.width = width
    channelCount = UInt32(format.channelCount)
    output = try RowBuffer(
      rowByteCount: width * format.pixelByteCount, rowCount: Self.rowCount, budget: budget)
  }

  package func push(_ rows: Strip.Rows) -> Int {
    precondition(rows.isEmpty || rows.rowByteCount >= output.rowByteCount, "rows are shorter")
    readyCount = min(rows.rowCount, Self.rowCount)
    for row in 0..<readyCount {
      cpixels_map_levels(table, channelCount, rows.bytes(row), output.bytes(row), width, CPIXELS_ISA_BEST)
    }
    return readyCount
  }

  package func read() -> Strip.Rows {
    defer { readyCount = 0 }
    return output.rows(count: readyCount)
  }

  package func reset() {}
}
