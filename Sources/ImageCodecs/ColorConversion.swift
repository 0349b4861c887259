internal import CCodecs

/// A conversion of rows from the colours of an image's profile to sRGB, relative colorimetric.
///
/// A class because a stage may have none, and belongs to one image as its budget does.
package final class ColorConversion {
  private let handle: OpaquePointer
  private let input: PixelFormat
  /// What it makes of the pixels that it was made for.
  package let output: PixelFormat
  // Outlives what is charged to it.
  private let budget: ImageBudget

  init(_ handle: OpaquePointer, of format: PixelFormat, budget: ImageBudget) {
    self.handle = handle
    input = format
    output = format.afterProfile
    self.budget = budget
  }

  deinit { ccodecs_conversion_destroy(handle) }

  /// Converts pixels of the format that the conversion was made for; `cmyk8` becomes `rgb8`, samples of 16 bits become
  /// those of 8, others stay what they are.
  /// - `width`: pixels of a row.
  /// - `buffer`: has room for as many rows; they are written from its first on.
  package func convert(_ rows: Strip.Rows, width: Int, to buffer: RowBuffer) {
    precondition(rows.rowByteCount >= width * input.pixelByteCount, "rows are shorter")
    precondition(buffer.rowByteCount >= width * output.pixelByteCount, "the buffer's rows are shorter")
    for row in 0..<rows.rowCount {
      ccodecs_conversion_convert(
        handle, rows.unsafeRow(row).assumingMemoryBound(to: UInt8.self),
        buffer.unsafeRow(row).assumingMemoryBound(to: UInt8.self), width)
    }
  }
}
