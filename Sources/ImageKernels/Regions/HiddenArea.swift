internal import ImageCodecs

/// A part of the stored image whose pixels are hidden.
///
/// All coordinates are those of the stored image at its full size, whatever the scale of the rows is.
package struct HiddenArea: Sendable, Hashable {
  /// The content of an area in place of its pixels.
  package enum Effect: Sendable, Hashable {
    /// A pixel of 8 bits: red, green, blue and alpha, or CMYK.
    case fill([UInt8])
    /// The mean of each block.
    case pixelate
    /// A gradient between the means of blocks.
    case blur
  }

  /// The ellipse of an area that is not a rectangle.
  package struct Ellipse: Sendable, Hashable {
    /// The column of the center in pixels.
    package let centerX: Double
    /// The row of the center in pixels.
    package let centerY: Double
    /// Half the width in pixels.
    package let radiusX: Double
    /// Half the height in pixels.
    package let radiusY: Double

    /// Creates an ellipse with radii above 0.
    package init(centerX: Double, centerY: Double, radiusX: Double, radiusY: Double) {
      (self.centerX, self.centerY, self.radiusX, self.radiusY) = (centerX, centerY, radiusX, radiusY)
    }
  }

  /// The size of blocks in pixels.
  package struct Grid: Sendable, Hashable {
    /// The width of a block.
    package let across: Int
    /// The height of a block.
    package let down: Int
    /// The number of pixels around a block that its pixels have an influence on.
    package let overhang: Int

    /// Creates a grid of blocks with sides of at least 1.
    package init(across: Int = 1, down: Int = 1, overhang: Int = 0) {
      (self.across, self.down, self.overhang) = (across, down, overhang)
    }
  }

  /// The columns of the area, or of the rectangle around its ellipse.
  package let columns: Range<Int>
  /// The rows of the area, or of the rectangle around its ellipse.
  package let rows: Range<Int>
  /// The ellipse; `nil` for a rectangle.
  package let ellipse: Ellipse?
  /// The size of the blocks of the image's format, to whose edges the area is extended; 1 for none.
  package let grid: Grid
  /// The content of the area in place of its pixels.
  package let effect: Effect

  package init(
    columns: Range<Int>, rows: Range<Int>, ellipse: Ellipse?, grid: Grid, effect: Effect
  ) {
    self.columns = columns
    self.rows = rows
    self.ellipse = ellipse
    self.grid = grid
    self.effect = effect
  }
}

/// The blocks of an area that is not filled.
extension HiddenArea {
  /// The number of blocks along the longer side.
  package static let maxBlockCount = 4
  /// The minimum side of a block in pixels.
  package static let minBlockSide = 16

  /// Whether the area is filled, and so needs no blocks.
  var isFilled: Bool {
    switch effect {
    case .fill: true
    case .pixelate, .blur: false
    }
  }

  private var blockSide: Int {
    let longer = max(columns.count, rows.count)
    return max(Self.minBlockSide, (longer + Self.maxBlockCount - 1) / Self.maxBlockCount)
  }

  var blockColumnCount: Int { max(1, columns.count / blockSide) }
  var blockRowCount: Int { max(1, rows.count / blockSide) }
}

/// The samples of an area in a plane, which may be smaller than the image.
extension HiddenArea {
  /// Returns the rows of the plane that show a part of the area.
  func rows(of plane: PlaneLayout) -> Range<Int> {
    Self.samples(Double(rows.lowerBound), Double(rows.upperBound), plane.verticalScale, plane.height)
  }

  /// Returns the columns of the plane that show a part of the area, or of the rectangle around its ellipse.
  func columns(of plane: PlaneLayout) -> Range<Int> {
    Self.samples(Double(columns.lowerBound), Double(columns.upperBound), plane.horizontalScale, plane.width)
  }

  /// Returns the samples of a row that are hidden; empty if there are none.
  func columns(ofRow row: Int, of plane: PlaneLayout) -> Range<Int> {
    guard rows(of: plane).contains(row) else { return 0..<0 }
    guard let ellipse else { return columns(of: plane) }
    // The rows of the image that a sample shows, or that have an influence on it, extended to whole blocks.
    let (down, overhang) = (Double(grid.down), Double(grid.overhang))
    let top = ((Double(row) / plane.verticalScale - overhang) / down).rounded(.down) * down
    let bottom = ((Double(row + 1) / plane.verticalScale + overhang) / down).rounded(.up) * down
    let distance = max(0, top - ellipse.centerY, ellipse.centerY - bottom) / ellipse.radiusY
    guard distance < 1 else { return 0..<0 }
    let half = ellipse.radiusX * (1 - distance * distance).squareRoot()
    let across = Double(grid.across)
    let first = ((ellipse.centerX - half) / across).rounded(.down) * across - overhang
    let end = ((ellipse.centerX + half) / across).rounded(.up) * across + overhang
    return Self.samples(
      max(first, Double(columns.lowerBound)), min(end, Double(columns.upperBound)), plane.horizontalScale, plane.width)
  }

  /// Returns the samples that show a part of the span from `start` to `end`.
  private static func samples(_ start: Double, _ end: Double, _ scale: Double, _ count: Int) -> Range<Int> {
    let first = min(max(0, Int((start * scale).rounded(.down))), count)
    return first..<max(first, min(Int((end * scale).rounded(.up)), count))
  }

  /// Returns the first row of a row of blocks in the plane; for the number of rows of blocks, the end of the area.
  func firstRow(ofBlocks index: Int, of plane: PlaneLayout) -> Int {
    Self.edge(index, of: blockRowCount, in: rows(of: plane))
  }

  /// Returns the first column of a column of blocks in the plane; for the number of columns of blocks, the end.
  func firstColumn(ofBlocks index: Int, of plane: PlaneLayout) -> Int {
    Self.edge(index, of: blockColumnCount, in: columns(of: plane))
  }

  private static func edge(_ index: Int, of count: Int, in range: Range<Int>) -> Int {
    range.lowerBound + range.count * index / count
  }
}
