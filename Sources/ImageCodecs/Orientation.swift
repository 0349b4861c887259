/// What must be done to a stored image to show it upright.
///
/// Source: CIPA DC-008 (Exif 2.32), tag 0x0112.
package enum Orientation: Int, Sendable, Hashable, CaseIterable {
  case up = 1
  case mirrored = 2
  case down = 3
  case downMirrored = 4
  /// Mirrored along the diagonal from the top left.
  case transposed = 5
  /// Turned clockwise by a quarter.
  case right = 6
  /// Mirrored along the diagonal from the top right.
  case transversed = 7
  /// Turned counter-clockwise by a quarter.
  case left = 8

  /// Whether the shown image's width is the stored one's height.
  package var swapsAxes: Bool { rawValue >= 5 }

  /// Whether stored columns are shown from last to first.
  package var reversesColumns: Bool { [.mirrored, .down, .transversed, .left].contains(self) }

  /// Whether stored rows are shown from last to first.
  package var reversesRows: Bool { [.down, .downMirrored, .right, .transversed].contains(self) }

  /// This orientation and then a clockwise turn by `quarters`, and after that mirroring.
  package func turned(quarters: Int, flipsColumns: Bool, flipsRows: Bool) -> Orientation {
    var result = matrix
    for _ in 0..<(quarters % 4 + 4) % 4 { result = Orientation.right.matrix.multiplied(by: result) }
    if flipsColumns { result = Orientation.mirrored.matrix.multiplied(by: result) }
    if flipsRows { result = Orientation.downMirrored.matrix.multiplied(by: result) }
    return Orientation.allCases.first { $0.matrix == result } ?? self
  }

  /// Where the stored axes, to the right and down, point in the shown image.
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

  /// Shown x is a x + b y, shown y is c x + d y.
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
