internal import CPixels
package import ImageCodecs

/// Multiplies colors by alpha, a few rows at a time, into its own buffer.
package struct Premultiplier {
  private let buffer: RowBuffer
  private let format: PixelFormat
  private let width: Int

  /// Creates a premultiplier and allocates its output rows.
  /// - `format`: `rgba8` or `rgba16`.
  /// - `rowCount`: the maximum number of rows per call.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(_ format: PixelFormat, width: Int, rowCount: Int, budget: ImageBudget) throws(CodecError) {
    self.format = format
    self.width = width
    buffer = try RowBuffer(
      rowByteCount: width * PixelFormat.premultipliedRGBA16.pixelByteCount, rowCount: rowCount, budget: budget)
  }

  /// Returns the number of bytes that a premultiplier charges.
  package static func byteCount(width: Int, rowCount: Int) -> Int {
    width * PixelFormat.premultipliedRGBA16.pixelByteCount * rowCount
  }

  /// The maximum number of rows per call.
  package var rowCount: Int { buffer.rowCount }

  /// Converts at most `rowCount` rows to `premultipliedRGBA16`; the result is valid until the next call.
  package func premultiply(_ rows: Strip.Rows) -> Strip.Rows {
    precondition(rows.isEmpty || rows.rowByteCount >= width * format.pixelByteCount, "rows are shorter")
    for row in 0..<rows.rowCount {
      let premultiplied = buffer.unsafeRow(row).assumingMemoryBound(to: UInt16.self)
      if format == .rgba16 {
        cpixels_premultiply_16bit(rows.samples(row), premultiplied, width)
      } else {
        cpixels_premultiply(rows.bytes(row), premultiplied, width, CPIXELS_ISA_BEST)
      }
    }
    return buffer.rows(count: rows.rowCount)
  }
}
