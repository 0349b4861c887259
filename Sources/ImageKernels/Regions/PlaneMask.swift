internal import CPixels
package import ImageCodecs

/// Hides areas of one plane of decoded rows, in its own buffer.
///
/// Rows of areas with blocks wait until the blocks' colors are known: for the first `sampledRowCount` rows of a block at
/// most. All other rows are ready at once.
package final class PlaneMask {
  private let areas: [HiddenArea]
  private let plane: PlaneLayout
  private let kind: cpixels_pixel_kind
  private let colors: [[UInt16]]
  private let sampledRowCount: Int
  /// The rows that wait, of which the first one has the index `first` in the plane.
  private let queue: RowQueue
  private var first = 0
  /// The sums of each area's blocks, row by row; empty for areas that are filled.
  private var sums: [[cpixels_block_sums]]
  /// The first row that is not painted.
  private var painted = 0

  /// The number of rows that are pushed at once.
  package static let portionRowCount = 16
  /// The maximum number of rows of a plane of the image's size from which the color of a block is computed.
  private static let maxSampledRowCount = 64

  /// Creates a mask and allocates its rows.
  /// - Parameters:
  ///   - areas: The areas, in their order.
  ///   - layout: The layout of the rows.
  ///   - index: The index of the plane.
  ///   - budget: The budget of the image.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(
    _ areas: [HiddenArea], of layout: PixelLayout, plane index: Int, budget: ImageBudget
  ) throws(CodecError) {
    let (format, plane) = (layout.format, layout.planes[index])
    self.areas = areas
    self.plane = plane
    kind = cpixels_pixel_kind(
      channels: UInt8(format.channelCount), is_16bit: format.is16Bit, has_alpha: format.hasAlpha)
    colors = areas.map { Self.samples(of: $0.effect, format, plane: index) }
    sampledRowCount = Self.sampledRowCount(layout, plane: index)
    queue = try RowQueue(
      rowByteCount: plane.width * format.pixelByteCount, capacity: Self.rowCount(areas, layout, plane: index),
      budget: budget)
    sums = areas.map(Self.emptySums)
  }

  /// Returns the number of bytes that a mask charges.
  package static func byteCount(_ areas: [HiddenArea], of layout: PixelLayout, plane index: Int) -> Int {
    layout.planes[index].width * layout.format.pixelByteCount * rowCount(areas, layout, plane: index)
  }

  private static func sampledRowCount(_ layout: PixelLayout, plane index: Int) -> Int {
    let share = layout.planes[index].verticalScale / layout.planes[0].verticalScale
    return max(1, Int(Double(maxSampledRowCount) * share))
  }

  /// Returns the number of rows in the buffer: those that wait, and two portions as planes do not advance evenly.
  private static func rowCount(_ areas: [HiddenArea], _ layout: PixelLayout, plane index: Int) -> Int {
    let plane = layout.planes[index]
    let waiting = areas.map { area in
      area.isFilled ? 0 : min(sampledRowCount(layout, plane: index), area.rows(of: plane).count)
    }
    return min(plane.height, (waiting.max() ?? 0) + 2 * portionRowCount + 8)
  }

  private static func emptySums(of area: HiddenArea) -> [cpixels_block_sums] {
    Array(
      repeating: cpixels_block_sums(channels: (0, 0, 0, 0), weight: 0, pixels: 0),
      count: area.isFilled ? 0 : area.blockColumnCount * area.blockRowCount)
  }

  /// Returns the samples of a filled area in a plane of `format`; empty for other effects.
  private static func samples(of effect: HiddenArea.Effect, _ format: PixelFormat, plane: Int) -> [UInt16] {
    guard case .fill(let pixel) = effect else { return [] }
    let (red, green, blue) = (Int(pixel[0]), Int(pixel[1]), Int(pixel[2]))
    let luma = Int(PixelConverter.luma(pixel))
    // Source: JFIF 1.02, "Conversion to and from RGB", in 1/65536.
    let channels: [Int] =
      switch format {
      case .gray8, .gray16: [luma]
      case .ycc8:
        switch plane {
        case 0: [luma]
        case 1: [min(255, 128 + ((-11059 * red - 21709 * green + 32768 * blue + 32768) >> 16))]
        default: [min(255, 128 + ((32768 * red - 27439 * green - 5329 * blue + 32768) >> 16))]
        }
      case .rgb8, .rgb16: [red, green, blue]
      case .rgba8, .rgba16, .premultipliedRGBA16, .cmyk8: pixel.map(Int.init)
      }
    let samples = channels.map { UInt16(format.is16Bit ? $0 * 257 : $0) }
    return samples + Array(repeating: 0, count: 4 - samples.count)
  }

  // MARK: Rows

  /// Prepares for the rows of another frame.
  package func reset() {
    _ = queue.take(queue.rowCount)
    (first, painted) = (0, 0)
    sums = areas.map(Self.emptySums)
  }

  /// Copies the next rows of the plane, and measures the blocks in them.
  /// - Throws: `outOfMemory` if other planes lag so far behind that the budget has no room for the rows.
  package func push(_ rows: Strip.Rows) throws(CodecError) {
    let known = pushedRowCount
    try queue.append(rows)
    for row in known..<pushedRowCount {
      fill(row)
      for index in areas.indices where !areas[index].isFilled { measure(row, index) }
    }
  }

  /// Paints the filled areas of a row.
  private func fill(_ row: Int) {
    for index in areas.indices where areas[index].isFilled {
      let columns = areas[index].columns(ofRow: row, of: plane)
      guard !columns.isEmpty else { continue }
      colors[index].withUnsafeBufferPointer { color in
        guard let color = color.baseAddress else { return }
        cpixels_row_fill(bytes(row), kind, columns.lowerBound, columns.count, color)
      }
    }
  }

  private func bytes(_ row: Int) -> UnsafeMutablePointer<UInt8> { queue.bytes(row - first) }

  /// Adds a row to the sums of an area's blocks, if it is one of their first rows.
  private func measure(_ row: Int, _ index: Int) {
    let area = areas[index]
    guard let block = blockRow(of: row, area), row < sampledEnd(of: block, area) else { return }
    for column in 0..<area.blockColumnCount {
      let first = area.firstColumn(ofBlocks: column, of: plane)
      let count = area.firstColumn(ofBlocks: column + 1, of: plane) - first
      cpixels_block_add(bytes(row), kind, first, count, &sums[index][block * area.blockColumnCount + column])
    }
  }

  /// Returns the row of blocks that a row of the plane shows; `nil` for a row beside the area.
  private func blockRow(of row: Int, _ area: HiddenArea) -> Int? {
    guard area.rows(of: plane).contains(row) else { return nil }
    return (0..<area.blockRowCount).last { area.firstRow(ofBlocks: $0, of: plane) <= row }
  }

  /// Returns the end of the rows from which the colors of a row of blocks are computed.
  private func sampledEnd(of block: Int, _ area: HiddenArea) -> Int {
    min(
      area.firstRow(ofBlocks: block, of: plane) + sampledRowCount, area.firstRow(ofBlocks: block + 1, of: plane))
  }

  /// The number of rows that were pushed, which are all if `isComplete`.
  package var pushedRowCount: Int { first + queue.rowCount }

  /// Returns the number of rows of the plane, from its first one, that can be painted.
  /// - `isComplete`: whether no rows follow.
  package func readyRowCount(isComplete: Bool) -> Int {
    var end = pushedRowCount
    if isComplete { return end }
    for area in areas where !area.isFilled {
      for block in 0..<area.blockRowCount where sampledEnd(of: block, area) > pushedRowCount {
        let first = area.firstRow(ofBlocks: block, of: plane)
        // A row of blocks may have no row in a small plane.
        if area.firstRow(ofBlocks: block + 1, of: plane) > first { end = min(end, first) }
      }
    }
    return max(end, first)
  }

  /// Returns the rows up to `end`, painted; they are valid until the next push.
  /// - `end`: at most the number of ready rows.
  package func read(upTo end: Int) -> Strip.Rows {
    while painted < end {
      paint(painted)
      painted += 1
    }
    return queue.rows.prefix(max(0, end - first))
  }

  /// Removes rows that were read.
  package func drop(_ count: Int) { first += queue.take(count).rowCount }

  private func paint(_ row: Int) {
    var isCovered = false
    for index in areas.indices where !areas[index].isFilled {
      let columns = areas[index].columns(ofRow: row, of: plane)
      guard !columns.isEmpty, let block = blockRow(of: row, areas[index]) else { continue }
      paint(row, columns, index, block)
      isCovered = true
    }
    if isCovered { fill(row) }
  }

  private func paint(_ row: Int, _ columns: Range<Int>, _ index: Int, _ block: Int) {
    let area = areas[index]
    var colors = means(of: block, index)
    if area.effect == .blur {
      // The colors of a row of blocks are those of its first rows, so a gradient leads to them from the row above.
      let above = means(of: max(0, block - 1), index)
      let (first, end) = (area.firstRow(ofBlocks: block, of: plane), area.firstRow(ofBlocks: block + 1, of: plane))
      let (passed, whole) = (2 * (row - first) + 1, 2 * (end - first))
      for sample in colors.indices {
        colors[sample] = UInt16(
          (Int(above[sample]) * (whole - passed) + Int(colors[sample]) * passed + end - first) / whole)
      }
    }
    colors.withUnsafeBufferPointer { colors in
      guard let base = colors.baseAddress else { return }
      if area.effect == .blur {
        let whole = area.columns(of: plane)
        cpixels_row_blend(
          bytes(row), kind, columns.lowerBound, columns.count, base, area.blockColumnCount, Double(whole.lowerBound),
          Double(whole.count) / Double(area.blockColumnCount))
        return
      }
      for column in 0..<area.blockColumnCount {
        let part = columns.clamped(
          to: area.firstColumn(ofBlocks: column, of: plane)..<area.firstColumn(ofBlocks: column + 1, of: plane))
        if !part.isEmpty { cpixels_row_fill(bytes(row), kind, part.lowerBound, part.count, base + 4 * column) }
      }
    }
  }

  /// Returns the colors of a row of an area's blocks, four samples each.
  private func means(of block: Int, _ index: Int) -> [UInt16] {
    let count = areas[index].blockColumnCount
    return [UInt16](unsafeUninitializedCapacity: 4 * count) { means, initialized in
      means.initialize(repeating: 0)
      for column in 0..<count {
        var sum = sums[index][block * count + column]
        if let base = means.baseAddress { cpixels_block_mean(&sum, kind, base + 4 * column) }
      }
      initialized = 4 * count
    }
  }
}
