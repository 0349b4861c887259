internal import ImageCodecs
internal import ImageKernels

/// An uncompressed result that is buffered as a whole, so that it can be encoded more than once.
final class BufferedImage {
  /// The number of rows that are passed to an encoder at once: the maximum height of a JPEG's MCU.
  private static let writtenRowCount = 16

  /// The encoder options that the buffered planes match.
  private(set) var options: EncoderOptions
  private let planes: [RowBuffer]
  private var bufferedRowCounts: [Int]
  /// Chroma planes of half the size, created when a trial first needs them.
  private var halved: [RowBuffer]?
  let budget: ImageBudget

  /// Allocates the image that an encoder with these options reads.
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

  /// Returns the number of bytes charged for the image and, with `halvesChroma`, for its smaller chroma planes.
  static func estimatedByteCount(_ options: EncoderOptions, halvesChroma: Bool) -> Int {
    let all = (0..<options.pixelFormat.planeCount).reduce(0) { sum, index in
      sum + options.planeSize(index).pixelCount * options.pixelFormat.pixelByteCount
    }
    let canHalve = halvesChroma && options.pixelFormat == .ycc8 && options.subsampling == .full
    return canHalve ? all + 2 * options.with(subsampling: .quarter).planeSize(1).pixelCount : all
  }

  /// Appends the rows of a strip to every plane.
  func append(_ strip: borrowing Strip) {
    for index in planes.indices { append(strip.plane(index), plane: index) }
  }

  func append(_ rows: Strip.Rows, plane index: Int) {
    planes[index].write(rows, at: bufferedRowCounts[index])
    bufferedRowCounts[index] += rows.rowCount
  }

  /// Copies rows of a part of an image in one plane.
  /// - Parameters:
  ///   - rows: The rows of the part.
  ///   - row: The index of the first row.
  ///   - byteOffset: The position of the part in each row, in bytes.
  func write(_ rows: Strip.Rows, row: Int, byteOffset: Int) {
    planes[0].write(rows, at: row, byteOffset: byteOffset)
  }

  /// Removes alpha from an image of RGBA in which no pixel is transparent.
  /// - Returns: Whether there was such alpha.
  func dropAlpha() -> Bool {
    guard options.pixelFormat == .rgba8, planes[0].isOpaque else { return false }
    planes[0].dropAlpha()
    options.pixelFormat = .rgb8
    return true
  }

  /// Encodes the image; the memory of its encoder is free afterwards.
  /// - Parameters:
  ///   - options: The options of the encoder; they may differ from those of this image in format, quality and chroma, and may
  ///     need rows in color of a gray image.
  ///   - buffer: The buffer for the output of the encoder.
  ///   - allowance: Checked for each row of MCUs.
  ///   - output: Called with compressed bytes, which are valid only during the call.
  /// - Throws: `limitExceeded`, `cancelled`.
  func encode(
    _ options: EncoderOptions, _ buffer: PixelBuffer, _ allowance: WorkAllowance,
    output: (RawSpan) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    let (budget, format) = (budget, self.options.pixelFormat)
    var encoder = try withCodecErrors { () throws(CodecError) in try Encoder(options: options, budget: budget) }
    let converter = try withCodecErrors { () throws(CodecError) in
      options.pixelFormat == format
        ? nil
        : try PixelConverter(
          from: format, to: options.pixelFormat, width: options.width, rowCount: Self.writtenRowCount, budget: budget)
    }
    var waiting = try withCodecErrors { () throws(CodecError) in try rows(options) }
    let chromaRowCount = Int(Double(Self.writtenRowCount) * options.subsampling.verticalScale)
    while waiting.contains(where: { $0.rowCount > 0 }) {
      try allowance.check()
      let portion = waiting.indices.map { waiting[$0].prefix($0 == 0 ? Self.writtenRowCount : chromaRowCount) }
      for index in waiting.indices { waiting[index].dropFirst(portion[index].rowCount) }
      do throws(CodecError) {
        if let converter {
          try encoder.write(Strip(format: options.pixelFormat, rows: converter.convert(portion[0])))
        } else {
          try encoder.write(Strip(format: format, rows: portion))
        }
      } catch { throw PipelineError(error) }
      try encoder.drain(buffer, output)
    }
    try encoder.finish(within: allowance)
    try encoder.drain(buffer, output)
  }

  /// Returns the planes, with chroma at the subsampling of `options`.
  func rows(_ options: EncoderOptions) throws(CodecError) -> [Strip.Rows] {
    guard planes.count == 3, options.subsampling != self.options.subsampling else {
      // Rows without their alpha are shorter than their room.
      return planes.enumerated().map { index, plane in
        let byteCount = self.options.planeSize(index).width * self.options.pixelFormat.pixelByteCount
        return plane.rows(count: plane.rowCount).part(
          first: 0, count: plane.rowCount, byteOffset: 0, byteCount: byteCount)
      }
    }
    if halved == nil {
      var smaller: [RowBuffer] = []
      for plane in planes.dropFirst() { smaller.append(try plane.halvedPlane(budget: budget)) }
      halved = smaller
    }
    return ([planes[0]] + (halved ?? [])).map { $0.rows(count: $0.rowCount) }
  }
}

extension EncoderOptions {
  /// Returns the size of the plane at `index` for an encoder with these options, in samples.
  func planeSize(_ index: Int) -> PixelSize {
    PixelSize(width: planeWidth(index), height: planeHeight(index))
  }

  /// Returns these options with another chroma subsampling.
  func with(subsampling: ChromaSubsampling) -> EncoderOptions {
    var options = self
    options.subsampling = subsampling
    return options
  }
}
