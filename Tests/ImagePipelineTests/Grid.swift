import ImageCodecs
import TestSupport

/// An image as rows of pixels: a slow and obvious reference for crops and rotations.
struct Grid: Equatable {
  private var rows: [[[UInt8]]]

  var width: Int { rows[0].count }
  var height: Int { rows.count }

  /// Decodes an upright image, ignoring alpha.
  init(decoding bytes: [UInt8]) throws {
    let pixels = try Pixels.decode(bytes)
    let size = pixels.layout[0]
    rows = (0..<size.height).map { y in
      (0..<size.width).map { x in pixels.color(x: x, y: y).map { UInt8($0.rounded()) } }
    }
  }

  func pixel(_ x: Int, _ y: Int) -> [UInt8] { rows[y][x] }

  func cropped(x: Int, y: Int, width: Int, height: Int) -> Grid {
    var grid = self
    grid.rows = rows[y..<y + height].map { Array($0[x..<x + width]) }
    return grid
  }

  /// Returns the image rotated clockwise by quarter turns.
  func rotated(quarters: Int) -> Grid {
    var grid = self
    for _ in 0..<quarters {
      let (source, height) = (grid.rows, grid.height)
      grid.rows = (0..<grid.width).map { x in (0..<height).map { y in source[height - 1 - y][x] } }
    }
    return grid
  }

  /// Returns the image mirrored left to right.
  func flipped() -> Grid {
    var grid = self
    grid.rows = rows.map { $0.reversed() }
    return grid
  }

  /// Returns the mean difference of samples between this image and the means of `side` by `side` pixels of another.
  func meanDifference(fromBoxMeansOf other: Grid, side: Int) -> Double {
    var sum = 0.0
    for y in 0..<height {
      for x in 0..<width {
        for channel in 0..<3 {
          var box = 0
          for dy in 0..<side { for dx in 0..<side { box += Int(other.rows[y * side + dy][x * side + dx][channel]) } }
          sum += abs(Double(box) / Double(side * side) - Double(rows[y][x][channel]))
        }
      }
    }
    return sum / Double(width * height * 3)
  }
}
