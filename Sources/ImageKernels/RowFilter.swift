package import ImageCodecs

/// One pass of filters over rows of RGB or RGBA, 8 bits: rows in, rows out.
///
/// Rows are pushed and read by turns. A filter that has taken the image's last row gives all that is left: there is
/// nothing to flush.
package enum RowFilter {
  case levels(LevelFilter)
  case color(ColorFilter)
  case area(AreaFilter)

  /// Takes rows while there is room; returns how many.
  package func push(_ rows: Strip.Rows) -> Int {
    switch self {
    case .levels(let filter): filter.push(rows)
    case .color(let filter): filter.push(rows)
    case .area(let filter): filter.push(rows)
    }
  }

  /// The next finished rows, if there are any; valid until the next call.
  package func read() -> Strip.Rows {
    switch self {
    case .levels(let filter): filter.read()
    case .color(let filter): filter.read()
    case .area(let filter): filter.read()
    }
  }

  /// Rows that a filter finishes at once at most.
  static let rowCount = 16

  /// What every filter charges for the rows that it finishes.
  package static func outputByteCount(width: Int, format: PixelFormat) -> Int {
    width * format.pixelByteCount * rowCount
  }
}
