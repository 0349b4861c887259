package import ImageCodecs

/// A filter pass over rows of 8-bit RGB or RGBA.
///
/// Push and read rows alternately. After the image's last row has been pushed, `read` returns all remaining rows; no
/// flush is needed.
package enum RowFilter {
  case levels(LevelFilter)
  case color(ColorFilter)
  case area(AreaFilter)

  /// Consumes rows while there is room, and returns their number.
  package func push(_ rows: Strip.Rows) -> Int {
    switch self {
    case .levels(let filter): filter.push(rows)
    case .color(let filter): filter.push(rows)
    case .area(let filter): filter.push(rows)
    }
  }

  /// Returns the next finished rows, or none; they are valid until the next call.
  package func read() -> Strip.Rows {
    switch self {
    case .levels(let filter): filter.read()
    case .color(let filter): filter.read()
    case .area(let filter): filter.read()
    }
  }

  /// Prepares for the rows of another frame; all rows of this one must have been pushed and read.
  package func reset() {
    switch self {
    case .levels: break
    case .color(let filter): filter.reset()
    case .area(let filter): filter.reset()
    }
  }

  /// The maximum number of rows that a filter returns at once.
  static let rowCount = 16

  /// Returns the number of bytes that each filter charges for its output rows.
  package static func outputByteCount(width: Int, format: PixelFormat) -> Int {
    width * format.pixelByteCount * rowCount
  }
}
