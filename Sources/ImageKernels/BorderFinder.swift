internal import CPixels
package import ImageCodecs

/// Finds the part of an image that is not border, row by row, in the memory of a few rows.
///
/// The definition is that of find_trim of libvips: see `cpixels_border_scan`. Alpha counts as a channel, and colors as far
/// as they are opaque.
package final class BorderFinder {
  private let columns: Range<Int>
  private let rows: Range<Int>
  private let channelCount: Int
  private let threshold: Int
  /// The marks of three rows, the bounds of samples that are border, and a premultiplied row.
  private let buffer: RowBuffer
  private let scratch: RowBuffer
  private var hasBounds: Bool
  /// The next row of the image.
  private var next = 0
  private var first: (column: Int, row: Int)?
  private var last = (column: 0, row: 0)

  private static let (lowRow, highRow, premultipliedRow, rowCount) = (3, 4, 5, 6)

  /// Creates a finder for a part of the image, and allocates its rows.
  /// - Parameters:
  ///   - columns: The columns of the part, at least one.
  ///   - rows: The rows of the part, at least one.
  ///   - format: `gray8`, `rgb8` or `rgba8`.
  ///   - threshold: The maximum difference of border from its color, 0 to 255.
  ///   - color: The red, green and blue of the border; `nil` for the color of the part's first pixel.
  ///   - budget: The budget of the image.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(
    columns: Range<Int>, rows: Range<Int>, of format: PixelFormat, threshold: Int, color: [UInt8]?, budget: ImageBudget
  ) throws(CodecError) {
    (self.columns, self.rows, self.threshold) = (columns, rows, threshold)
    channelCount = format.channelCount
    buffer = try RowBuffer(
      rowByteCount: columns.count * format.channelCount, rowCount: Self.rowCount, budget: budget)
    scratch = try RowBuffer(rowByteCount: (columns.count + 2) * format.channelCount, rowCount: 1, budget: budget)
    hasBounds = false
    if let color {
      setBounds(channelCount == 1 ? [PixelConverter.luma(color)] : Array((color + [255]).prefix(channelCount)))
    }
  }

  private func setBounds(_ color: [UInt8]) {
    let (low, high) = (buffer.bytes(Self.lowRow), buffer.bytes(Self.highRow))
    for index in 0..<columns.count * channelCount {
      let sample = Int(color[index % channelCount])
      low[index] = UInt8(max(0, sample - threshold))
      high[index] = UInt8(min(255, sample + threshold))
    }
    hasBounds = true
  }

  /// Reads the next rows of the image.
  package func push(_ rows: Strip.Rows) {
    for index in 0..<rows.rowCount {
      defer { next += 1 }
      guard self.rows.contains(next) else { continue }
      mark(rows.bytes(index) + columns.lowerBound * channelCount)
      if next > self.rows.lowerBound { scan(next - 1, below: next) }
    }
  }

  private func mark(_ row: UnsafePointer<UInt8>) {
    var row = row
    if channelCount == 4 {
      let premultiplied = buffer.bytes(Self.premultipliedRow)
      cpixels_premultiply_8bit(row, premultiplied, columns.count)
      row = UnsafePointer(premultiplied)
    }
    if !hasBounds { setBounds((0..<channelCount).map { row[$0] }) }
    cpixels_border_mark(
      row, buffer.bytes(Self.lowRow), buffer.bytes(Self.highRow), columns.count * channelCount, buffer.bytes(next % 3))
  }

  private func scan(_ row: Int, below: Int) {
    let above = max(row - 1, rows.lowerBound)
    var (start, end) = (0, 0)
    guard
      cpixels_border_scan(
        buffer.bytes(above % 3), buffer.bytes(row % 3), buffer.bytes(below % 3), columns.count, UInt32(channelCount),
        scratch.bytes(0), &start, &end)
    else { return }
    first = (min(first?.column ?? start, start), first?.row ?? row)
    last = (max(last.column, end), row)
  }

  /// Ends the image.
  /// - Returns: The columns and rows of the image that are not border; `nil` if all of the part is.
  package func finish() -> (columns: Range<Int>, rows: Range<Int>)? {
    if next > rows.lowerBound {
      let row = min(next, rows.upperBound) - 1
      scan(row, below: row)
    }
    return first.map { first in
      (columns.lowerBound + first.column..<columns.lowerBound + last.column + 1, first.row..<last.row + 1)
    }
  }
}
