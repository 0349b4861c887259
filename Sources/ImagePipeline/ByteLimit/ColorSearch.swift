/// Chooses the number of colors of a palette to try next, from the sizes of earlier trials.
///
/// The numbers are searched by bisection: dithering makes the size of an animation hard to predict from that number.
struct ColorSearch {
  private static let counts = [4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192]
  /// The minimum number of colors of a result.
  static let minCount = 4
  /// The minimum number of colors of a result that is only made smaller than its image.
  static let minCountOfSmaller = 32

  /// The indices of the numbers that may fit and were not tried.
  private var open: Range<Int>

  /// - `colorCount`: The number of colors of a result that is too large.
  /// - `floor`: The minimum number to try.
  init(below colorCount: Int, floor: Int) {
    let first = Self.counts.firstIndex { $0 >= floor } ?? 0
    let end = Self.counts.firstIndex { $0 >= colorCount } ?? Self.counts.count
    open = min(first, end)..<end
  }

  /// The next number of colors; `nil` if there is no other.
  var next: Int? { open.isEmpty ? nil : Self.counts[middle] }

  /// Records whether the trial with the number `next` fits.
  mutating func note(fits: Bool) { open = fits ? middle + 1..<open.upperBound : open.lowerBound..<middle }

  private var middle: Int { (open.lowerBound + open.upperBound) / 2 }
}
