internal import CPixels
package import ImageCodecs

/// Measures where an image attracts attention: on a grid of at most 96x96 cells, from all of its rows.
package final class SaliencyFinder {
  /// The maximum number of cells along a side.
  private static let maxCellCount = 96

  private let width: Int
  private let height: Int
  private let channelCount: Int
  private let side: Int
  private let columnCount: Int
  private let rowCount: Int
  /// The sums of the current row of cells, and the mean colors of those before it.
  private var sums: [UInt32]
  private var colors: [UInt8] = []
  private var next = 0

  /// Creates a finder for rows of `width` pixels.
  /// - `format`: `gray8`, `rgb8` or `rgba8`.
  package init(width: Int, height: Int, of format: PixelFormat) {
    (self.width, self.height, channelCount) = (width, height, format.channelCount)
    side = (max(width, height) + Self.maxCellCount - 1) / Self.maxCellCount
    columnCount = (width + side - 1) / side
    rowCount = (height + side - 1) / side
    sums = Array(repeating: 0, count: 3 * columnCount)
  }

  /// Reads the next rows of the image.
  package func push(_ rows: Strip.Rows) {
    for index in 0..<rows.rowCount where next < height {
      sums.withUnsafeMutableBufferPointer { sums in
        guard let sums = sums.baseAddress else { return }
        cpixels_cells_add(rows.bytes(index), width, UInt32(channelCount), UInt32(side), sums)
      }
      next += 1
      if next % side == 0 || next == height { endCells() }
    }
  }

  private func endCells() {
    let rowCount = (next - 1) % side + 1
    for column in 0..<columnCount {
      let count = UInt32(rowCount * min(side, width - column * side))
      for channel in 0..<3 { colors.append(UInt8((sums[3 * column + channel] + count / 2) / count)) }
    }
    for index in sums.indices { sums[index] = 0 }
  }

  /// Returns the saliency of the cells.
  package func finish() -> SaliencyMap {
    colors += Array(repeating: 0, count: max(0, 3 * columnCount * rowCount - colors.count))
    var values = [UInt16](repeating: 0, count: columnCount * rowCount)
    colors.withUnsafeBufferPointer { colors in
      values.withUnsafeMutableBufferPointer { values in
        guard let colors = colors.baseAddress, let values = values.baseAddress else { return }
        cpixels_saliency(colors, UInt32(columnCount), UInt32(rowCount), values)
      }
    }
    return SaliencyMap(
      columnCount: columnCount, rowCount: rowCount, values: values, width: Double(width) / Double(side),
      height: Double(height) / Double(side))
  }
}

/// The saliency of the cells of an image.
package struct SaliencyMap: Sendable {
  /// The number of cells in a row.
  package let columnCount: Int
  /// The number of rows of cells.
  package let rowCount: Int
  /// The values, row by row.
  package let values: [UInt16]
  /// The width of the image in cells, the last of which may be cut.
  package let width: Double
  /// The height of the image in cells.
  package let height: Double
}
