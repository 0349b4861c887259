internal import ImageCodecs

/// A result before it is compressed, held whole so that it can be compressed more than once.
final class HeldPicture {
  /// Of the planes that are held.
  let options: EncoderOptions
  private let planes: [PixelBuffer]
  private var heldRowCounts: [Int]
  /// Chroma planes of half the size, made when a trial first asks for them.
  private var halved: [PixelBuffer]?
  let budget: PictureBudget

  /// Room for the picture that an encoder with these options is given.
  init(options: EncoderOptions, budget: PictureBudget) throws(CodecError) {
    self.options = options
    self.budget = budget
    var planes: [PixelBuffer] = []
    for index in 0..<options.pixelFormat.planeCount {
      let size = options.planeSize(index)
      planes.append(
        try PixelBuffer(byteCount: size.pixelCount * options.pixelFormat.pixelByteCount, budget: budget))
    }
    self.planes = planes
    heldRowCounts = planes.map { _ in 0 }
  }

  /// What is charged for the picture, and with `halvesChroma` for smaller chroma planes.
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
    let stride = stride(ofPlane: index)
    for row in 0..<rows.rowCount {
      (planes[index].base + (heldRowCounts[index] + row) * stride).copyMemory(
        from: rows.row(row), byteCount: stride)
    }
    heldRowCounts[index] += rows.rowCount
  }

  /// Gives the picture to an encoder, a row of MCUs at a time.
  /// - `options`: of the encoder; those of this picture but for quality and chroma.
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
      return planes.indices.map { heldRows(planes[$0], of: self.options, plane: $0) }
    }
    let chroma: [PixelBuffer]
    if let halved { chroma = halved } else { chroma = try halve() }
    halved = chroma
    let smaller = self.options.with(subsampling: options.subsampling)
    return [heldRows(planes[0], of: smaller, plane: 0)] + chroma.map { heldRows($0, of: smaller, plane: 1) }
  }

  private func heldRows(_ buffer: PixelBuffer, of options: EncoderOptions, plane index: Int) -> Strip.Rows {
    let size = options.planeSize(index)
    return Strip.Rows(
      base: UnsafeRawPointer(buffer.base), rowStride: size.width * options.pixelFormat.pixelByteCount,
      rowCount: size.height)
  }

  /// Chroma samples are centred, so those of half the size are the means of four; at odd ends the last counts twice.
  private func halve() throws(CodecError) -> [PixelBuffer] {
    let (full, half) = (options.planeSize(1), options.with(subsampling: .quarter).planeSize(1))
    var smaller: [PixelBuffer] = []
    for plane in planes.dropFirst() {
      let buffer = try PixelBuffer(byteCount: half.pixelCount, budget: budget)
      let (source, destination) = (UnsafeRawPointer(plane.base), buffer.base.assumingMemoryBound(to: UInt8.self))
      let samples = source.assumingMemoryBound(to: UInt8.self)
      for y in 0..<half.height {
        let upper = samples + 2 * y * full.width
        let lower = samples + min(2 * y + 1, full.height - 1) * full.width
        for x in 0..<half.width {
          let (left, right) = (2 * x, min(2 * x + 1, full.width - 1))
          let sum = Int(upper[left]) + Int(upper[right]) + Int(lower[left]) + Int(lower[right])
          destination[y * half.width + x] = UInt8((sum + 2) >> 2)
        }
      }
      smaller.append(buffer)
    }
    return smaller
  }

  private func stride(ofPlane index: Int) -> Int {
    options.planeSize(index).width * options.pixelFormat.pixelByteCount
  }
}

extension EncoderOptions {
  /// The size of a plane that an encoder with these options is given.
  func planeSize(_ index: Int) -> PixelSize {
    guard index > 0, pixelFormat == .ycc8 else { return PixelSize(width: width, height: height) }
    return PixelSize(
      width: Int((Double(width) * subsampling.horizontalScale).rounded(.up)),
      height: Int((Double(height) * subsampling.verticalScale).rounded(.up)))
  }

  func with(subsampling: ChromaSubsampling) -> EncoderOptions {
    var options = self
    options.subsampling = subsampling
    return options
  }
}
