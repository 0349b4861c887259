package import ImageCodecs

/// A filter pass over rows of 8-bit RGB or RGBA.
///
/// Push and read rows alternately. After the image's last row has been pushed, `read` returns all remaining rows; no
/// flush is needed.
package protocol RowFilter: AnyObject {
  /// Consumes rows while there is room, and returns their number.
  func push(_ rows: Strip.Rows) -> Int

  /// Returns the next finished rows, or none; they are valid until the next call.
  func read() -> Strip.Rows

  /// Prepares for the rows of another frame; all rows of this one must have been pushed and read.
  func reset()
}

extension RowFilter {
  /// The maximum number of rows that a filter returns at once.
  static var rowCount: Int { 16 }

  /// Returns the number of bytes that a filter charges for its output rows.
  package static func outputByteCount(width: Int, format: PixelFormat) -> Int {
    width * format.pixelByteCount * rowCount
  }
}
