internal import ImageCodecs

/// The samples of one plane that lie in a window of the picture; the others are passed over.
struct PlaneWindow {
  let columnCount: Int
  let rowCount: Int
  /// Where in the first column the window begins, in samples: 0 to 1.
  let columnOffset: Double
  let rowOffset: Double
  /// Whether it is all of the plane.
  let isWhole: Bool
  private let leadingByteCount: Int
  private let firstRow: Int
  private let endsAtLastRow: Bool
  private var passedRowCount = 0

  init(_ plane: PlaneLayout, _ window: Window, of size: PixelSize, pixelByteCount: Int) {
    let columns = Self.span(window.x, window.width, plane.horizontalScale, plane.width)
    let rows = Self.span(window.y, window.height, plane.verticalScale, plane.height)
    isWhole = window == Window(size)
    columnCount = columns.count
    columnOffset = columns.offset
    leadingByteCount = columns.first * pixelByteCount
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
  var isPassed: Bool { !endsAtLastRow && passedRowCount >= firstRow + rowCount }

  /// The part of the next rows that lies in the window.
  mutating func take(_ rows: Strip.Rows) -> Strip.Rows {
    if isWhole { return rows }
    let leading = min(max(firstRow - passedRowCount, 0), rows.rowCount)
    let taken = min(max(firstRow + rowCount - max(passedRowCount, firstRow), 0), rows.rowCount - leading)
    passedRowCount += rows.rowCount
    return Strip.Rows(
      base: rows.base + leading * rows.rowStride + leadingByteCount, rowStride: rows.rowStride, rowCount: taken)
  }
}
