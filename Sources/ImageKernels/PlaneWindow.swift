package import ImageCodecs

/// Selects the samples of one plane that are in a window of the image.
package struct PlaneWindow {
  /// The number of columns.
  package let columnCount: Int
  /// The number of rows.
  package let rowCount: Int
  /// The position in the first column at which the window starts, in samples: 0 to 1.
  package let columnOffset: Double
  /// The position in the first row at which the window starts, in samples: 0 to 1.
  package let rowOffset: Double
  /// Whether the window covers the whole plane.
  package let isWhole: Bool
  private let leadingByteCount: Int
  private let byteCount: Int
  private let firstRow: Int
  private let endsAtLastRow: Bool
  private var passedRowCount = 0

  /// Creates the window of one plane.
  /// - `x`, `y`, `width`, `height`: the window in pixels of the image.
  /// - `isWhole`: whether the window covers the whole image.
  package init(
    _ plane: PlaneLayout, x: Double, y: Double, width: Double, height: Double, isWhole: Bool, pixelByteCount: Int
  ) {
    let columns = Self.span(x, width, plane.horizontalScale, plane.width)
    let rows = Self.span(y, height, plane.verticalScale, plane.height)
    self.isWhole = isWhole
    columnCount = columns.count
    columnOffset = columns.offset
    leadingByteCount = columns.first * pixelByteCount
    byteCount = columns.count * pixelByteCount
    rowCount = rows.count
    rowOffset = rows.offset
    firstRow = rows.first
    endsAtLastRow = rows.first + rows.count == plane.height
  }

  private static func span(
    _ start: Double, _ length: Double, _ scale: Double, _ count: Int
  ) -> (first: Int, count: Int, offset: Double) {
    // The small margin keeps sums of fractions from adding a sample where an edge is a whole number.
    let first = min(Int((start * scale + 1e-6).rounded(.down)), count - 1)
    let end = min(max(Int(((start + length) * scale - 1e-6).rounded(.up)), first + 1), count)
    return (first, end - first, max(0, start * scale - Double(first)))
  }

  /// Whether all rows of the window have been consumed and the plane has more rows, which are not needed.
  package var isPassed: Bool { !endsAtLastRow && passedRowCount >= firstRow + rowCount }

  /// Prepares for the rows of another frame.
  package mutating func reset() { passedRowCount = 0 }

  /// Returns the part of the next rows of the plane that is in the window.
  package mutating func take(_ rows: Strip.Rows) -> Strip.Rows {
    if isWhole || rows.isEmpty { return rows }
    let leading = min(max(firstRow - passedRowCount, 0), rows.rowCount)
    let taken = min(max(firstRow + rowCount - max(passedRowCount, firstRow), 0), rows.rowCount - leading)
    passedRowCount += rows.rowCount
    return rows.part(first: leading, count: taken, byteOffset: leadingByteCount, byteCount: byteCount)
  }
}
