/// The transformation that displays a stored image upright.
///
/// Source: CIPA DC-008 (Exif 2.32), tag 0x0112.
package enum Orientation: Int, Sendable, Hashable, CaseIterable {
  case up = 1
  case mirrored = 2
  case down = 3
  case downMirrored = 4
  /// Mirrored along the diagonal from the top left.
  case transposed = 5
  /// Rotated 90 degrees clockwise.
  case right = 6
  /// Mirrored along the diagonal from the top right.
  case transversed = 7
  /// Rotated 90 degrees counter-clockwise.
  case left = 8

  /// Whether the displayed width is the stored height.
  package var swapsAxes: Bool { rawValue >= 5 }

  /// Whether stored columns are displayed from last to first.
  package var reversesColumns: Bool { [.mirrored, .down, .transversed, .left].contains(self) }

  /// Whether stored rows are displayed from last to first.
  package var reversesRows: Bool { [.down, .downMirrored, .right, .transversed].contains(self) }

  /// Returns this orientation followed by `quarters` clockwise rotations of 90 degrees, and then by the flips.
  package func rotated(quarters: Int, flipsColumns: Bool, flipsRows: Bool) -> Orientation {
    var result = matrix
    for _ in 0..<(quarters % 4 + 4) % 4 { result = Orientation.right.matrix.multiplied(by: result) }
    if flipsColumns { result = Orientation.mirrored.matrix.multiplied(by: result) }
    if flipsRows { result = Orientation.downMirrored.matrix.multiplied(by: result) }
    return Orientation.allCases.first { $0.matrix == result } ?? self
  }

  /// The directions of the stored axes, right and down, in the displayed image.
  private var matrix: Matrix {
    switch self {
    case .up: Matrix(1, 0, 0, 1)
    case .mirrored: Matrix(-1, 0, 0, 1)
    case .down: Matrix(-1, 0, 0, -1)
    case .downMirrored: Matrix(1, 0, 0, -1)
    case .transposed: Matrix(0, 1, 1, 0)
    case .right: Matrix(0, -1, 1, 0)
    case .transversed: Matrix(0, -1, -1, 0)
    case .left: Matrix(0, 1, -1, 0)
    }
  }

  /// A linear map: displayed x is a x + b y, displayed y is c x + d y.
  private struct Matrix: Equatable {
    var a: Int
    var b: Int
    var c: Int
    var d: Int

    init(_ a: Int, _ b: Int, _ c: Int, _ d: Int) {
      (self.a, self.b, self.c, self.d) = (a, b, c, d)
    }

    func multiplied(by first: Matrix) -> Matrix {
      Matrix(
        a * first.a + b * first.c, a * first.b + b * first.d, c * first.a + d * first.c, c * first.b + d * first.d)
    }
  }
}
