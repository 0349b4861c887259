/// What must be done to a stored picture to show it upright.
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

  /// Whether the shown picture's width is the stored one's height.
  package var swapsAxes: Bool { rawValue >= 5 }

  /// Whether stored columns are shown from last to first.
  package var reversesColumns: Bool { [.mirrored, .down, .transversed, .left].contains(self) }

  /// Whether stored rows are shown from last to first.
  package var reversesRows: Bool { [.down, .downMirrored, .right, .transversed].contains(self) }
}
