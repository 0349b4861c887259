internal import CPixels
package import ImageCodecs

/// Whether rows are opaque and gray, and how the brightness of their pixels differs.
package struct RowTraits {
  /// Whether no pixel was transparent.
  package private(set) var isOpaque = true
  /// Whether no pixel was colored.
  package private(set) var isGray = true
  private var tally = cpixels_luma_tally()

  /// The maximum difference of two channels of gray, in levels.
  private static let grayTolerance: Int32 = 6
  /// The maximum difference of chroma from that of gray, in levels: as much as `grayTolerance`, or less.
  private static let chromaTolerance: Int32 = 2
  /// The maximum share of pixels of the four most frequent levels of a photograph.
  private static let maxLevelShare = 0.35
  /// The maximum share of equal neighbors, and the minimum share of small steps among the other ones, of a photograph with
  /// more pixels of the same levels.
  private static let (maxFlatShare, minSmallShare) = (0.6, 0.65)

  package init() {}

  /// Notes the rows of RGB or RGBA with straight alpha.
  package mutating func note(_ rows: Strip.Rows, width: Int, channelCount: Int) {
    for row in 0..<rows.rowCount {
      if !isGray && (channelCount < 4 || !isOpaque) { return }
      if isGray { isGray = cpixels_are_gray(rows.bytes(row), UInt32(channelCount), width, Self.grayTolerance) }
      if channelCount == 4, isOpaque { isOpaque = cpixels_are_opaque(rows.bytes(row), width) }
    }
  }

  /// Notes the rows of a chroma plane.
  package mutating func noteChroma(_ rows: Strip.Rows, width: Int) {
    for row in 0..<rows.rowCount where isGray {
      isGray = cpixels_are_neutral(rows.bytes(row), width, Self.chromaTolerance)
    }
  }

  /// Counts the brightnesses of a row: luma, or RGB or RGBA, which is converted in `scratch`.
  package mutating func tally(_ row: Strip.Rows, width: Int, channelCount: Int, scratch: RowBuffer?) {
    guard !row.isEmpty else { return }
    guard channelCount > 1, let scratch else { return cpixels_tally_luma(row.bytes(0), width, &tally) }
    cpixels_luma(row.bytes(0), UInt32(channelCount), scratch.bytes(0), width)
    cpixels_tally_luma(scratch.bytes(0), width, &tally)
  }

  /// Whether the rows look like those of a photograph.
  package var isPhotographic: Bool {
    let levels = withUnsafeBytes(of: tally.levels) { Array($0.bindMemory(to: UInt32.self)) }
    let total = levels.reduce(0) { $0 + Double($1) }
    guard total > 0 else { return false }
    let frequent = levels.sorted(by: >).prefix(4).reduce(0) { $0 + Double($1) }
    if frequent <= Self.maxLevelShare * total { return true }
    let (all, flat, small) = (Double(tally.step_count), Double(tally.flat_count), Double(tally.small_count))
    return flat <= Self.maxFlatShare * all && small >= Self.minSmallShare * (all - flat) && small > 0
  }
}
