internal import CPixels
package import ImageCodecs

/// Transforms the rows of one plane from stored to displayed order.
///
/// Mirroring works on a few rows at a time. Every other orientation needs the last stored row or column first, and
/// therefore buffers the whole plane. Rows that become columns are gathered first: a few of them at a time would touch
/// every displayed row for a few bytes.
package struct PlaneOrienter {
  private let orientation: Orientation
  private let width: Int
  private let height: Int
  private let pixelByteCount: Int
  private let upright: RowBuffer
  private var placedRowCount = 0
  // Stored rows that become columns together, if rows do, and how many of them wait.
  private let gathered: RowBuffer?
  private var waitingRowCount = 0

  /// The maximum number of rows per call of `mirror`.
  package static let mirroredRowCount = 16
  private static let gatheredRowCount = 16

  /// Creates an orienter and allocates its buffer.
  /// - `width`, `height`: the size of the stored plane in samples.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(
    _ orientation: Orientation, width: Int, height: Int, pixelByteCount: Int, budget: ImageBudget
  ) throws(CodecError) {
    self.orientation = orientation
    self.width = width
    self.height = height
    self.pixelByteCount = pixelByteCount
    let shownHeight = orientation.swapsAxes ? width : height
    upright = try RowBuffer(
      rowByteCount: (orientation.swapsAxes ? height : width) * pixelByteCount,
      rowCount: orientation == .mirrored ? Self.mirroredRowCount : shownHeight, budget: budget)
    gathered =
      orientation.swapsAxes
      ? try RowBuffer(rowByteCount: width * pixelByteCount, rowCount: Self.gatheredRowCount, budget: budget) : nil
  }

  /// Returns the number of bytes that an orienter charges.
  package static func estimatedByteCount(
    _ orientation: Orientation, width: Int, height: Int, pixelByteCount: Int
  ) -> Int {
    let rowCount = orientation == .mirrored ? mirroredRowCount : height
    return width * (rowCount + (orientation.swapsAxes ? gatheredRowCount : 0)) * pixelByteCount
  }

  /// Mirrors at most `mirroredRowCount` rows left to right; the result is valid until the next call.
  package func mirror(_ rows: Strip.Rows) -> Strip.Rows {
    precondition(orientation == .mirrored)
    let result = upright.rows(count: rows.rowCount)
    orient(rows, first: 0, height: rows.rowCount)
    return result
  }

  /// Writes the next stored rows to their displayed positions; for orientations that buffer the plane.
  package mutating func place(_ rows: Strip.Rows) {
    precondition(
      orientation != .mirrored && placedRowCount + waitingRowCount + rows.rowCount <= height,
      "there are more rows than the plane has")
    guard let gathered else { return orient(next: rows) }
    var rest = rows
    while !rest.isEmpty {
      let count = min(rest.rowCount, gathered.rowCount - waitingRowCount)
      let portion = rest.part(first: 0, count: count, byteOffset: 0, byteCount: gathered.rowByteCount)
      gathered.write(portion, at: waitingRowCount)
      rest.dropFirst(count)
      waitingRowCount += count
      guard waitingRowCount == gathered.rowCount || placedRowCount + waitingRowCount == height else { return }
      orient(next: gathered.rows(count: waitingRowCount))
      waitingRowCount = 0
    }
  }

  /// Prepares for the rows of another frame.
  package mutating func reset() { (placedRowCount, waitingRowCount) = (0, 0) }

  /// The whole displayed plane, valid after every row has been placed.
  package var rows: Strip.Rows { upright.rows(count: upright.rowCount) }

  private mutating func orient(next rows: Strip.Rows) {
    orient(rows, first: placedRowCount, height: height)
    placedRowCount += rows.rowCount
  }

  private func orient(_ rows: Strip.Rows, first: Int, height: Int) {
    if rows.isEmpty { return }
    precondition(rows.rowByteCount >= width * pixelByteCount, "rows are shorter")
    cpixels_orient_rows(
      rows.bytes(0), rows.rowStride, UInt32(first), UInt32(rows.rowCount), UInt32(width), UInt32(height),
      UInt8(pixelByteCount), UInt8(orientation.rawValue), upright.bytes(0), upright.rowByteCount)
  }
}
