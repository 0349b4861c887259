internal import CPixels
package import ImageCodecs

/// A face, in fractions of the image as it was searched.
package struct FoundFace: Sendable, Hashable {
  /// The left edge, 0 to 1.
  package let x: Double
  /// The top edge, 0 to 1.
  package let y: Double
  /// The width, above 0.
  package let width: Double
  /// The height, above 0.
  package let height: Double
}

/// Finds faces in an image of which all rows are pushed, on a gray copy of at most 320x320 pixels.
package final class FaceFinder {
  /// The longer side of the image that is searched, unless the image is smaller.
  package static let maxSide = Int(CPIXELS_FACES_MAX_SIDE)
  /// The maximum number of faces.
  package static let maxCount = 100

  private let channelCount: Int
  private let width: Int
  private let height: Int
  private let resizer: PlaneResizer
  private let gray: PixelBuffer
  private let budget: ImageBudget
  private var next = 0

  /// Creates a finder and allocates its memory.
  /// - `format`: `gray8`, `rgb8` or `rgba8`.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(width: Int, height: Int, of format: PixelFormat, budget: ImageBudget) throws(CodecError) {
    channelCount = format.channelCount
    let factor = min(1, Double(Self.maxSide) / Double(max(width, height)))
    self.width = max(1, Int((Double(width) * factor).rounded()))
    self.height = max(1, Int((Double(height) * factor).rounded()))
    func axis(_ source: Int, _ destination: Int) -> AxisGeometry {
      AxisGeometry(
        sourceCount: source, sourceScale: 1, sourceLength: Double(source), destinationScale: 1,
        destinationLength: destination, isReversed: false, kernel: .box)
    }
    resizer = try PlaneResizer(
      horizontal: axis(width, self.width), vertical: axis(height, self.height), format: format, budget: budget)
    gray = try PixelBuffer(byteCount: self.width * self.height, budget: budget)
    gray.unsafeBase.initializeMemory(as: UInt8.self, repeating: 0, count: gray.byteCount)
    self.budget = budget
  }

  /// Reads the next rows of the image.
  package func push(_ rows: Strip.Rows) {
    var rest = rows
    while !rest.isEmpty {
      let count = resizer.push(rest)
      rest.dropFirst(count)
      if takeRows() == 0, count == 0 { return }
    }
  }

  /// Converts the rows that are ready to gray.
  private func takeRows() -> Int {
    var count = 0
    while true {
      let rows = resizer.read()
      if rows.isEmpty { return count }
      for index in 0..<rows.rowCount where next < height {
        let row = (gray.unsafeBase + next * width).assumingMemoryBound(to: UInt8.self)
        cpixels_faces_gray(rows.bytes(index), width, UInt32(channelCount), row)
        next += 1
      }
      count += rows.rowCount
    }
  }

  /// Finds the faces of the displayed image, after all rows were pushed.
  /// - `orientation`: The orientation of the rows.
  /// - Returns: The faces, the largest first.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package func faces(by cascade: FaceCascade, _ orientation: Orientation) throws(CodecError) -> [FoundFace] {
    _ = takeRows()
    let (shownWidth, shownHeight) = orientation.swapsAxes ? (height, width) : (width, height)
    let upright = try PixelBuffer(byteCount: width * height, budget: budget)
    let (source, shown) = (
      gray.unsafeBase.assumingMemoryBound(to: UInt8.self), upright.unsafeBase.assumingMemoryBound(to: UInt8.self)
    )
    cpixels_orient_rows(
      source, width, 0, UInt32(height), UInt32(width), UInt32(height), 1, UInt8(orientation.rawValue), shown, shownWidth
    )
    let workspace = try PixelBuffer(
      byteCount: cpixels_faces_workspace(UInt32(shownWidth), UInt32(shownHeight)), budget: budget)
    var found = [cpixels_face](repeating: cpixels_face(), count: Self.maxCount)
    let count = cpixels_faces_find(
      cascade.handle, shown, UInt32(shownWidth), UInt32(shownHeight), workspace.unsafeBase, CPIXELS_ISA_BEST, &found,
      found.count)
    withExtendedLifetime((gray, upright, workspace, cascade)) {}
    return found[..<count].map { face in
      FoundFace(
        x: Double(face.x) / Double(shownWidth), y: Double(face.y) / Double(shownHeight),
        width: Double(face.width) / Double(shownWidth), height: Double(face.height) / Double(shownHeight))
    }
  }
}
