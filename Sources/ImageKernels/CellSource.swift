internal import CPixels
package import ImageCodecs

/// Gathers the cells of the planes of an image, and the traits of its rows, strip by strip.
package final class CellSource {
  /// The cells of each plane.
  package let grids: [CellGrid]
  /// The traits of the rows so far.
  package private(set) var traits = RowTraits()
  private let format: PixelFormat
  private let width: Int
  // Rows with premultiplied alpha, and pixels of 8 bits if the samples have 16; luma of a row.
  private let premultiplied: RowBuffer?
  private let straight: RowBuffer?
  private let luma: RowBuffer?

  /// The number of rows that are converted at once.
  private static let rowCount = 8

  /// Creates a source and allocates its memory; returns `nil` for CMYK.
  /// - Parameters:
  ///   - layout: The layout of the strips.
  ///   - orientation: The orientation in which the image is displayed: the cell at its upper left corner is whole.
  ///   - budget: The budget of the image.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init?(_ layout: PixelLayout, orientation: Orientation, budget: ImageBudget) throws(CodecError) {
    guard Self.isSupported(layout.format) else { return nil }
    format = layout.format
    width = layout.planes[0].width
    var grids: [CellGrid] = []
    for (across, down) in Self.axes(layout, orientation) {
      grids.append(
        try CellGrid(across: across, down: down, channelCount: Self.channelCount(layout.format), budget: budget))
    }
    self.grids = grids
    let needsStraight = Self.isNarrowed(layout.format)
    let (hasAlpha, isGray) = (layout.format.hasAlpha, Self.channelCount(layout.format) == 1)
    premultiplied = hasAlpha ? try RowBuffer(rowByteCount: 4 * width, rowCount: Self.rowCount, budget: budget) : nil
    straight =
      needsStraight
      ? try RowBuffer(rowByteCount: layout.format.channelCount * width, rowCount: Self.rowCount, budget: budget) : nil
    luma = isGray ? nil : try RowBuffer(rowByteCount: width, rowCount: 1, budget: budget)
  }

  /// Returns an upper bound of the bytes that a source charges.
  package static func estimatedByteCount(_ layout: PixelLayout, orientation: Orientation) -> Int {
    guard isSupported(layout.format) else { return 0 }
    let channelCount = channelCount(layout.format)
    let grids = axes(layout, orientation).reduce(0) {
      $0 + CellGrid.byteCount(across: $1.across, down: $1.down, channelCount: channelCount)
    }
    let width = layout.planes[0].width
    let multiplied = layout.format.hasAlpha ? 4 * width * rowCount : 0
    let narrowed = isNarrowed(layout.format) ? channelCount * width * rowCount : 0
    return grids + multiplied + narrowed + (channelCount == 1 ? 0 : width)
  }

  private static func isSupported(_ format: PixelFormat) -> Bool {
    switch format {
    case .gray8, .rgb8, .rgba8, .ycc8, .gray16, .rgb16, .rgba16, .premultipliedRGBA16: true
    case .cmyk8: false
    }
  }

  /// Whether rows are rounded to 8 bits first.
  private static func isNarrowed(_ format: PixelFormat) -> Bool {
    format.is16Bit && format != .premultipliedRGBA16
  }

  /// The number of channels of a plane.
  private static func channelCount(_ format: PixelFormat) -> Int { format == .ycc8 ? 1 : format.channelCount }

  /// Returns the cells of each plane.
  ///
  /// They are squares of the smallest side, 1 or an even number, for which their number is small enough. A subsampled plane
  /// has the same cells of half the side.
  private static func axes(
    _ layout: PixelLayout, _ orientation: Orientation
  ) -> [(across: CellAxis, down: CellAxis)] {
    let whole = layout.planes[0]
    let minimum = (max(whole.width, whole.height) + Thumbnail.maxSide - 1) / Thumbnail.maxSide
    let side = minimum == 1 ? 1 : minimum + minimum % 2
    func axis(_ length: Int, of plane: Int, isReversed: Bool) -> CellAxis {
      let first = isReversed ? (length - 1) % side + 1 : side
      guard plane < length else { return CellAxis(length: length, first: first, side: side) }
      return CellAxis(length: plane, first: (first + 1) / 2, side: max(1, side / 2))
    }
    // Stages that merge planes leave the layouts of those that are gone.
    return layout.planes.prefix(layout.format.planeCount).map { plane in
      (
        axis(whole.width, of: plane.width, isReversed: orientation.reversesColumns),
        axis(whole.height, of: plane.height, isReversed: orientation.reversesRows)
      )
    }
  }

  /// Whether all rows have arrived.
  package var isComplete: Bool { grids.allSatisfy(\.isComplete) }

  /// Adds the rows of a strip.
  package func add(_ strip: borrowing Strip) {
    for (index, grid) in grids.enumerated() {
      var rows = strip.plane(index)
      while !rows.isEmpty, !grid.isComplete {
        let portion = rows.prefix(min(grid.remainingCount, premultiplied ?? straight == nil ? .max : Self.rowCount))
        if index == 0 { add(portion, to: grid) } else { addChroma(portion, to: grid) }
        rows.dropFirst(portion.rowCount)
      }
    }
  }

  private func addChroma(_ rows: Strip.Rows, to grid: CellGrid) {
    traits.noteChroma(rows, width: grid.across.length)
    grid.add(rows)
  }

  private func add(_ rows: Strip.Rows, to grid: CellGrid) {
    // One row of every fourth row of cells is enough.
    let isTallied = grid.isAtStart && (grid.down.side == 1 || grid.index.isMultiple(of: 4))
    var colors = rows
    var cells = rows
    if let straight {
      colors = narrowed(rows, into: straight)
      cells = colors
    }
    if let premultiplied {
      cells = multiplied(colors, into: premultiplied)
      if format == .premultipliedRGBA16 { colors = cells }
    }
    if isTallied {
      traits.tally(colors.prefix(1), width: width, channelCount: grid.channelCount, scratch: luma)
    }
    if grid.channelCount > 1 { traits.note(colors, width: width, channelCount: grid.channelCount) }
    grid.add(cells)
  }

  private func narrowed(_ rows: Strip.Rows, into buffer: RowBuffer) -> Strip.Rows {
    for row in 0..<rows.rowCount {
      cpixels_convert_to_8bit(rows.samples(row), buffer.bytes(row), format.channelCount * width)
    }
    return buffer.rows(count: rows.rowCount)
  }

  private func multiplied(_ rows: Strip.Rows, into buffer: RowBuffer) -> Strip.Rows {
    for row in 0..<rows.rowCount {
      if format == .premultipliedRGBA16 {
        cpixels_narrow_premultiplied(rows.samples(row), buffer.bytes(row), 4 * width)
      } else {
        cpixels_premultiply_8bit(rows.bytes(row), buffer.bytes(row), width)
      }
    }
    return buffer.rows(count: rows.rowCount)
  }
}
