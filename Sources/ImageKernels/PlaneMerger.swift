package import ImageCodecs

/// Brings planes of Y, Cb and Cr to the size of the image, as decoders do, and merges them into rows of RGB.
package struct PlaneMerger {
  /// The maximum number of rows that are merged at once.
  private static let rowCount = 16

  /// Enlarge the planes that are smaller than the image.
  private let resizers: [PlaneResizer?]
  private let merger: YCCMerger
  /// The rows of the current strip that the resizers have not consumed.
  private var waiting: [Strip.Rows] = []
  /// Rows of the image's width that are not merged.
  private var finished: [Strip.Rows] = []

  /// Creates a merger and allocates its memory.
  /// - `layout`: the layout of the strips.
  /// - `doubles`: whether planes of half the size are enlarged with the samples of libjpeg, and not to more exact ones.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(_ layout: PixelLayout, doubles: Bool, budget: ImageBudget) throws(CodecError) {
    let image = layout.mergedPlane
    merger = try YCCMerger(width: image.width, budget: budget)
    var resizers: [PlaneResizer?] = []
    for plane in layout.planes {
      guard plane.width != image.width || plane.height != image.height else {
        resizers.append(nil)
        continue
      }
      if doubles, let doubler = try PlaneResizer(doubling: plane, to: image, budget: budget) {
        resizers.append(doubler)
        continue
      }
      resizers.append(
        try PlaneResizer(
          horizontal: Self.horizontal(plane, to: image), vertical: Self.vertical(plane, to: image), format: .gray8,
          budget: budget))
    }
    self.resizers = resizers
  }

  /// Returns an upper bound of the bytes that a merger charges.
  /// - `layout`: the layout of the strips.
  package static func estimatedByteCount(_ layout: PixelLayout) -> Int {
    let image = layout.mergedPlane
    let isLumaWhole = layout.planes[0].width == image.width && layout.planes[0].height == image.height
    let enlarged = layout.planes.dropFirst(isLumaWhole ? 1 : 0)
    return enlarged.reduce(YCCMerger.estimatedByteCount(width: image.width)) { sum, plane in
      let resizing = PlaneResizer.byteCount(
        horizontal: horizontal(plane, to: image), vertical: vertical(plane, to: image), format: .gray8)
      return sum + max(resizing, PlaneResizer.byteCount(doubling: plane, to: image))
    }
  }

  /// Prepares for the rows of another frame; all rows of this one must have been read.
  package mutating func reset() {
    (waiting, finished) = ([], [])
    for resizer in resizers { resizer?.reset() }
  }

  /// Supplies the rows of a strip, which must stay valid until `read` returns none.
  package mutating func push(_ strip: borrowing Strip) {
    waiting = []
    for index in 0..<3 { waiting.append(strip.plane(index)) }
  }

  /// Returns the next rows of RGB, or none; they are valid until the next call.
  /// - Throws: `outOfMemory` if a plane runs so far ahead that the budget has no room for its waiting rows.
  package mutating func read() throws(CodecError) -> Strip.Rows {
    while true {
      let rows = merger.read()
      if !rows.isEmpty { return rows }
      if finished.contains(where: { !$0.isEmpty }) {
        try merger.push(&finished)
      } else if !enlarge() {
        return .none
      }
    }
  }

  /// Brings the next rows of each plane to the size of the image; returns whether there were any.
  private mutating func enlarge() -> Bool {
    guard !waiting.isEmpty else { return false }
    finished = []
    var isIdle = true
    for index in 0..<3 {
      let taken: Int
      if let resizer = resizers[index] {
        taken = resizer.push(waiting[index])
        finished.append(resizer.read())
      } else {
        finished.append(waiting[index].prefix(Self.rowCount))
        taken = finished[index].rowCount
      }
      waiting[index].dropFirst(taken)
      if taken > 0 || !finished[index].isEmpty { isIdle = false }
    }
    return !isIdle
  }

  private static func horizontal(_ plane: PlaneLayout, to image: PlaneLayout) -> AxisGeometry {
    axis(plane.width, scale: plane.horizontalScale / image.horizontalScale, length: image.width)
  }

  private static func vertical(_ plane: PlaneLayout, to image: PlaneLayout) -> AxisGeometry {
    axis(plane.height, scale: plane.verticalScale / image.verticalScale, length: image.height)
  }

  private static func axis(_ sampleCount: Int, scale: Double, length: Int) -> AxisGeometry {
    AxisGeometry(
      sourceCount: sampleCount, sourceScale: scale, sourceLength: Double(length), destinationScale: 1,
      destinationLength: length, isReversed: false,
      enlargement: AxisGeometry.Enlargement(isChroma: true, width: sampleCount))
  }
}

extension PixelLayout {
  /// The layout of the rows to which the planes are merged: as large as the largest plane, which in some JPEGs is one of
  /// chroma.
  package var mergedPlane: PlaneLayout {
    planes.dropFirst().reduce(planes[0]) { merged, plane in
      PlaneLayout(
        width: max(merged.width, plane.width), height: max(merged.height, plane.height),
        horizontalScale: max(merged.horizontalScale, plane.horizontalScale),
        verticalScale: max(merged.verticalScale, plane.verticalScale))
    }
  }
}
