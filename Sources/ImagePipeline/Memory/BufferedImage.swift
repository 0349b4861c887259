internal import ImageCodecs
internal import ImageKernels

/// A result before it is compressed, held whole so that it can be compressed more than once.
final class BufferedImage {
  /// Of the planes that are held.
  let options: EncoderOptions
  private let planes: [RowBuffer]
  private var bufferedRowCounts: [Int]
  /// Chroma planes of half the size, made when a trial first asks for them.
  private var halved: [RowBuffer]?
  let budget: ImageBudget

  /// Room for the image that an encoder with these options is given.
  init(options: EncoderOptions, budget: ImageBudget) throws(CodecError) {
    self.options = options
    self.budget = budget
    var planes: [RowBuffer] = []
    for index in 0..<options.pixelFormat.planeCount {
      let size = options.planeSize(index)
      planes.append(
        try RowBuffer(
          rowByteCount: size.width * options.pixelFormat.pixelByteCount, rowCount: size.height, budget: budget))
    }
    self.planes = planes
    bufferedRowCounts = planes.map { _ in 0 }
  }

  /// What is charged for the image, and with `halvesChroma` for smaller chroma planes.
  static func estimatedByteCount(_ options: EncoderOptions, halvesChroma: Bool) -> Int {
    let all = (0..<options.pixelFormat.planeCount).reduce(0) { sum, index in
      sum + options.planeSize(index).pixelCount * options.pixelFormat.pixelByteCount
    }
    let canHalve = halvesChroma && options.pixelFormat == .ycc8 && options.subsampling == .full
    return canHalve ? all + 2 * options.with(subsampling: .quarter).planeSize(1).pixelCount : all
  }

  func append(_ strip: borrowing Strip) {
    for index in planes.indices { append(strip.plane(index), plane: index) }
  }

  func append(_ rows: Strip.Rows, plane index: Int) {
    planes[index].write(rows, at: bufferedRowCounts[index])
    bufferedRowCounts[index] += rows.rowCount
  }

  /// Gives the image to an encoder, a row of MCUs at a time.
  /// - `options`: of the encoder; those of this image but for quality and chroma.
  func write(
    options: EncoderOptions, _ next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    let all = try withCodecErrors { () throws(CodecError) in try rows(options) }
    var waiting = all
    while waiting.contains(where: { $0.rowCount > 0 }) {
      let portion = waiting.indices.map { index in
        waiting[index].prefix(index == 0 ? 16 : Int(16 * options.subsampling.verticalScale))
      }
      for index in waiting.indices { waiting[index].dropFirst(portion[index].rowCount) }
      try next(Strip(format: options.pixelFormat, rows: portion))
    }
  }

  /// The planes with chroma of the size that `options` name.
  func rows(_ options: EncoderOptions) throws(CodecError) -> [Strip.Rows] {
    guard planes.count == 3, options.subsampling != self.options.subsampling else {
      return planes.map { $0.rows(count: $0.rowCount) }
    }
    if halved == nil { halved = try halve() }
    return ([planes[0]] + (halved ?? [])).map { $0.rows(count: $0.rowCount) }
  }

  private func halve() throws(CodecError) -> [RowBuffer] {
    var smaller: [RowBuffer] = []
    for plane in planes.dropFirst() { smaller.append(try plane.halvedPlane(budget: budget)) }
    return smaller
  }
}

extension EncoderOptions {
  /// The size of a plane that an encoder with these options is given.
  func planeSize(_ index: Int) -> PixelSize {
    guard index > 0, pixelFormat == .ycc8 else { return PixelSize(width: width, height: height) }
    return PixelSize(
      width: planeWidth(index), height: Int((Double(height) * subsampling.verticalScale).rounded(.up)))
  }

  func with(subsampling: ChromaSubsampling) -> EncoderOptions {
    var options = self
    options.subsampling = subsampling
    return options
  }
}
