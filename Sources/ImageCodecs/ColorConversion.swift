internal import CCodecs

/// A conversion of rows from an image's colors to another color space, with the relative colorimetric intent.
///
/// It is a class because a stage may have none, and because it belongs to one image, as the budget does.
package final class ColorConversion {
  private let handle: OpaquePointer
  private let input: PixelFormat
  /// The pixel format of the converted rows.
  package let output: PixelFormat
  // The budget must outlive the memory that is charged to it.
  private let budget: ImageBudget

  init(_ handle: OpaquePointer, of format: PixelFormat, keepsDepth: Bool, budget: ImageBudget) {
    self.handle = handle
    input = format
    output = keepsDepth ? format : format.afterProfile
    self.budget = budget
  }

  deinit { ccodecs_conversion_destroy(handle) }

  /// Whether this build converts colors, through littlecms.
  package static var isSupported: Bool { ccodecs_converts_colors() }

  /// An upper bound of the bytes that a conversion from sRGB charges.
  package static var estimatedByteCountFromSRGB: Int { ccodecs_conversion_estimate_from_srgb() }

  /// The bytes that a conversion which keeps 16 bits may charge in addition: a level for each of a gray profile's.
  package static let deepByteCount = 2 << 16

  /// Converts rows in the input format and writes them to the start of `buffer`.
  ///
  /// `cmyk8` becomes `rgb8`, and unless the depth is kept, 16-bit formats become the 8-bit formats with the same channels.
  /// Other formats do not change.
  /// - `width`: the number of pixels in a row.
  /// - `buffer`: must have at least as many rows as `rows`.
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
