internal import CPixels
internal import ImageCodecs

/// Rows of the result as stored to rows of the result as shown.
///
/// A mirrored picture is mirrored row by row. Every other turn needs the last stored row, or the last stored column,
/// first: those hold the result, which is small, never the input.
struct OrientStage {
  private let orientation: Orientation
  private let format: PixelFormat
  private let storedSizes: [PixelSize]
  private let planes: [PixelBuffer]
  private var placedRowCounts: [Int]

  private static let mirroredRowCount = 16
  private static let stripRowCount = 64

  init(plan: Plan, budget: PictureBudget) throws(PipelineError) {
    orientation = plan.orientation
    format = plan.encoder.pixelFormat
    storedSizes = Self.planeSizes(plan)
    placedRowCounts = storedSizes.map { _ in 0 }
    do {
      var planes: [PixelBuffer] = []
      for size in plan.orientation == .up ? [] : storedSizes {
        let rowCount = plan.orientation == .mirrored ? Self.mirroredRowCount : size.height
        let byteCount = size.width * rowCount * plan.encoder.pixelFormat.pixelByteCount
        planes.append(try PixelBuffer(byteCount: byteCount, budget: budget))
      }
      self.planes = planes
    } catch { throw PipelineError(error) }
  }

  /// What this stage charges.
  static func estimatedByteCount(_ plan: Plan) -> Int {
    guard plan.orientation != .up else { return 0 }
    let format = plan.encoder.pixelFormat
    return planeSizes(plan).reduce(0) { sum, size in
      sum + size.width * (plan.orientation == .mirrored ? mirroredRowCount : size.height) * format.pixelByteCount
    }
  }

  /// Takes rows as stored; hands them on at once where the orientation allows it.
  mutating func push(
    _ strip: borrowing Strip, next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    switch orientation {
    case .up: try next(strip)
    case .mirrored: try mirror(planes.indices.map { strip.plane($0) }, next: next)
    default: for index in planes.indices { place(strip.plane(index), plane: index) }
    }
  }

  /// Hands on the held picture, if there is one.
  mutating func finish(next: (borrowing Strip) throws(PipelineError) -> Void) throws(PipelineError) {
    guard orientation != .up, orientation != .mirrored else { return }
    var waiting = planes.indices.map { index in
      let upright = storedSizes[index].turned(by: orientation)
      return Strip.Rows(
        base: UnsafeRawPointer(planes[index].base), rowStride: uprightStride(ofPlane: index), rowCount: upright.height)
    }
    while waiting.contains(where: { $0.rowCount > 0 }) {
      // Of halved planes half as many, so that none runs ahead and waits in the encoder.
      let portion = waiting.indices.map { index in
        waiting[index].prefix(isHalved(plane: index) ? Self.stripRowCount / 2 : Self.stripRowCount)
      }
      for index in waiting.indices { waiting[index].dropFirst(portion[index].rowCount) }
      try next(Strip(format: format, rows: portion))
    }
  }

  private func isHalved(plane index: Int) -> Bool {
    storedSizes[index].turned(by: orientation).height < storedSizes[0].turned(by: orientation).height
  }

  private func mirror(
    _ rows: [Strip.Rows], next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    var waiting = rows
    while waiting.contains(where: { $0.rowCount > 0 }) {
      var mirrored = waiting
      for index in planes.indices {
        let portion = waiting[index].prefix(Self.mirroredRowCount)
        orient(portion, first: 0, height: portion.rowCount, plane: index)
        waiting[index].dropFirst(portion.rowCount)
        mirrored[index] = Strip.Rows(
          base: UnsafeRawPointer(planes[index].base), rowStride: uprightStride(ofPlane: index),
          rowCount: portion.rowCount)
      }
      try next(Strip(format: format, rows: mirrored))
    }
  }

  private mutating func place(_ rows: Strip.Rows, plane index: Int) {
    orient(rows, first: placedRowCounts[index], height: storedSizes[index].height, plane: index)
    placedRowCounts[index] += rows.rowCount
  }

  private func orient(_ rows: Strip.Rows, first: Int, height: Int, plane index: Int) {
    guard rows.rowCount > 0 else { return }
    cpixels_orient_rows(
      rows.base.assumingMemoryBound(to: UInt8.self), rows.rowStride, UInt32(first), UInt32(rows.rowCount),
      UInt32(storedSizes[index].width), UInt32(height), UInt8(format.pixelByteCount), UInt8(orientation.rawValue),
      planes[index].base.assumingMemoryBound(to: UInt8.self), uprightStride(ofPlane: index))
  }

  private func uprightStride(ofPlane index: Int) -> Int {
    storedSizes[index].turned(by: orientation).width * format.pixelByteCount
  }

  private static func planeSizes(_ plan: Plan) -> [PixelSize] {
    let size = plan.storedOutputSize
    guard plan.encoder.pixelFormat == .ycc8 else { return [size] }
    let scale = plan.storedChromaScale
    let chroma = PixelSize(
      width: Int((Double(size.width) * scale.horizontal).rounded(.up)),
      height: Int((Double(size.height) * scale.vertical).rounded(.up)))
    return [size, chroma, chroma]
  }
}
