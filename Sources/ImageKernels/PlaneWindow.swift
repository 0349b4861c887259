package import ImageCodecs

/// The samples of one plane that lie in a window of the image; the others are passed over.
package struct PlaneWindow {
  /// The number of columns.
  package let columnCount: Int
  /// The number of rows.
  package let rowCount: Int
  /// Where in the first column the window begins, in samples: 0 to 1.
  package let columnOffset: Double
  package let rowOffset: Double
  /// Whether it is all of the plane.
  package let isWhole: Bool
  private let leadingByteCount: Int
  private let byteCount: Int
  private let firstRow: Int
  private let endsAtLastRow: Bool
  private var passedRowCount = 0

  /// - `x`, `y`, `width`, `height`: of the window, in pixels of the image.
  /// - `isWhole`: whether the window is all of the image.
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
    let first = min(Int((start * scale).rounded(.down)), count - 1)
    // Whole samples must stay whole where fractions were added up.
    let end = min(max(Int(((start + length) * scale - 1e-6).rounded(.up)), first + 1), count)
    return (first, end - first, start * scale - Double(first))
  }

  /// Whether every row of the window was taken while others follow.
  package var isPassed: Bool { !endsAtLastRow && passedRowCount >= firstRow + rowCount }

  /// The part of the next rows that lies in the window.
  package mutating func take(_ rows: Strip.Rows) -> Strip.Rows {
    if isWhole || rows.isEmpty { return rows }
    let leading = min(max(firstRow - passedRowCount, 0), rows.rowCount)
    let taken = min(max(firstRow + rowCount - max(passedRowCount, firstRow), 0), rows.rowCount - leading)
    passedRowCount += rows.rowCount
    return rows.part(first: leading, count: taken, byteOffset: leadingByteCount, byteCount: byteCount)
  }
}
