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

/// Finds faces in an image of which all rows are pushed, on a small copy.
package final class FaceFinder {
  /// The maximum number of faces.
  package static let maxCount = 100

  private let model: FaceModel
  private let channelCount: Int
  private let width: Int
  private let height: Int
  private let resizer: PlaneResizer
  /// The pixels that are searched, as they are stored.
  private let pixels: PixelBuffer
  private let budget: ImageBudget
  private var next = 0

  /// Creates a finder and allocates its memory.
  /// - `format`: `gray8`, `rgb8` or `rgba8`.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(
    width: Int, height: Int, of format: PixelFormat, model: FaceModel, budget: ImageBudget
  ) throws(CodecError) {
    self.model = model
    channelCount = format.channelCount
    let factor = min(1, Double(model.maxSide) / Double(max(width, height)))
    self.width = max(1, Int((Double(width) * factor).rounded()))
    self.height = max(1, Int((Double(height) * factor).rounded()))
    func axis(_ source: Int, _ destination: Int) -> AxisGeometry {
      AxisGeometry(
        sourceCount: source, sourceScale: 1, sourceLength: Double(source), destinationScale: 1,
        destinationLength: destination, isReversed: false, kernel: .box)
    }
    resizer = try PlaneResizer(
      horizontal: axis(width, self.width), vertical: axis(height, self.height), format: format, budget: budget)
    pixels = try PixelBuffer(byteCount: model.channelCount * self.width * self.height, budget: budget)
    pixels.unsafeBase.initializeMemory(as: UInt8.self, repeating: 0, count: pixels.byteCount)
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

  /// Converts the rows that are ready to the pixels that are searched.
  private func takeRows() -> Int {
    var count = 0
    while true {
      let rows = resizer.read()
      if rows.isEmpty { return count }
      for index in 0..<rows.rowCount where next < height {
        let row = (pixels.unsafeBase + next * width * model.channelCount).assumingMemoryBound(to: UInt8.self)
        model.convert(rows.bytes(index), channelCount: channelCount, width: width, to: row)
        next += 1
      }
      count += rows.rowCount
    }
  }

  /// Finds the faces of the displayed image, after all rows were pushed.
  /// - `orientation`: The orientation of the rows.
  /// - Returns: The faces, the largest first.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package func faces(_ orientation: Orientation) throws(CodecError) -> [FoundFace] {
    _ = takeRows()
    let (shownWidth, shownHeight) = orientation.swapsAxes ? (height, width) : (width, height)
    let upright = try PixelBuffer(byteCount: pixels.byteCount, budget: budget)
    let (source, shown) = (
      pixels.unsafeBase.assumingMemoryBound(to: UInt8.self), upright.unsafeBase.assumingMemoryBound(to: UInt8.self)
    )
    cpixels_orient_rows(
      source, width * model.channelCount, 0, UInt32(height), UInt32(width), UInt32(height), UInt8(model.channelCount),
      UInt8(orientation.rawValue), shown, shownWidth * model.channelCount)
    let workspace = try PixelBuffer(
      byteCount: model.workspaceByteCount(width: shownWidth, height: shownHeight), budget: budget)
    var found = [cpixels_face](repeating: cpixels_face(), count: Self.maxCount)
    let count = model.find(
      in: shown, width: shownWidth, height: shownHeight, workspace: workspace.unsafeBase, faces: &found)
    withExtendedLifetime((pixels, upright, workspace, model)) {}
    return found[..<count].map { face in
      FoundFace(
        x: Double(face.x) / Double(shownWidth), y: Double(face.y) / Double(shownHeight),
        width: Double(face.width) / Double(shownWidth), height: Double(face.height) / Double(shownHeight))
    }
  }
}
