internal import ImageCodecs
internal import ImageKernels

/// Hides the regions of a rendition on decoded rows, before any stage sees them.
///
/// Rows are copied, because other renditions of the image show them. It stands before the list of stages, which may pause
/// between any two of its strips.
final class RegionMask {
  let layout: PixelLayout
  private let planes: [PlaneMask]
  /// The rows of the current decoded strip that were not pushed to the planes.
  private var rest: [Strip.Rows] = []
  private var portionCount = 0
  /// The number of rows of each plane that were emitted, and that of those that the current strip ends with.
  private var emitted: [Int]
  private var ends: [Int]
  /// Whether no rows of the frame follow.
  var isFinished = false

  /// Creates a mask and allocates its memory.
  /// - `layout`: The layout of decoded rows.
  /// - Throws: `limitExceeded` if the budget is exhausted.
  init(_ areas: [HiddenArea], layout: PixelLayout, budget: ImageBudget) throws(PipelineError) {
    self.layout = layout
    planes = try withCodecErrors { () throws(CodecError) in
      var planes: [PlaneMask] = []
      for index in layout.planes.indices {
        planes.append(try PlaneMask(areas, of: layout, plane: index, budget: budget))
      }
      return planes
    }
    emitted = planes.map { _ in 0 }
    ends = emitted
  }

  /// Returns the number of bytes that a mask charges.
  static func byteCount(_ areas: [HiddenArea], layout: PixelLayout) -> Int {
    areas.isEmpty ? 0 : layout.planes.indices.reduce(0) { $0 + PlaneMask.byteCount(areas, of: layout, plane: $1) }
  }

  /// Supplies the next decoded rows, which must stay valid until `advance` returns false.
  func push(_ strip: borrowing Strip) {
    rest = []
    for index in planes.indices { rest.append(strip.plane(index)) }
    let maximum = rest.map(\.rowCount).max() ?? 0
    portionCount = (maximum + PlaneMask.portionRowCount - 1) / PlaneMask.portionRowCount
  }

  /// Makes the next rows available in which the regions are hidden, after those of the last call.
  /// - Returns: Whether there are any.
  /// - Throws: `limitExceeded` if the budget is exhausted.
  func advance() throws(PipelineError) -> Bool {
    for (index, plane) in planes.enumerated() { plane.drop(ends[index] - emitted[index]) }
    emitted = ends
    repeat {
      ends = readyRowCounts
      if ends != emitted { return true }
    } while try pushPortion()
    return false
  }

  /// The rows that `advance` made available.
  var rows: [Strip.Rows] { planes.indices.map { planes[$0].read(upTo: ends[$0]) } }

  /// Returns the numbers of rows, from the first one of each plane, that are ready and show the same part of the image.
  private var readyRowCounts: [Int] {
    let isComplete = isFinished || planes.indices.allSatisfy { planes[$0].pushedRowCount >= layout.planes[$0].height }
    let counts = planes.map { $0.readyRowCount(isComplete: isComplete) }
    if isComplete { return counts }
    let scales = layout.planes.map(\.verticalScale)
    let shared = counts.indices.map { Double(counts[$0]) / scales[$0] }.min() ?? 0
    return counts.indices.map { max(emitted[$0], min(counts[$0], Int(shared * scales[$0] + 1e-6))) }
  }

  /// Pushes the next rows of the strip, the same part of each plane.
  /// - Returns: Whether there were any.
  private func pushPortion() throws(PipelineError) -> Bool {
    guard portionCount > 0 else { return false }
    for (index, plane) in planes.enumerated() {
      let portion = rest[index].prefix((rest[index].rowCount + portionCount - 1) / portionCount)
      rest[index].dropFirst(portion.rowCount)
      try withCodecErrors { () throws(CodecError) in try plane.push(portion) }
    }
    portionCount -= 1
    return true
  }

  /// Prepares for the rows of another frame.
  func reset() {
    for plane in planes { plane.reset() }
    (rest, portionCount, isFinished) = ([], 0, false)
    emitted = planes.map { _ in 0 }
    ends = emitted
  }
}
