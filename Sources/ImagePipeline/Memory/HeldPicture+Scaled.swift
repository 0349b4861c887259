internal import CPixels
internal import ImageCodecs

extension HeldPicture {
  /// This picture, smaller.
  /// - `options`: of the encoder that it is for.
  func scaled(_ options: EncoderOptions) throws(CodecError) -> HeldPicture {
    let smaller = try HeldPicture(options: options, budget: budget)
    for (index, rows) in try rows(options).enumerated() { try smaller.fill(plane: index, from: rows, of: self.options) }
    return smaller
  }

  /// What is charged for a smaller picture, and for making it.
  static func smallerByteCount(_ options: EncoderOptions) -> Int {
    let format: PixelFormat = options.pixelFormat == .rgba8 ? .premultipliedRGBA16 : options.pixelFormat
    // A resampler for a smaller result has wider windows of shorter rows: it takes about as much.
    let resizers = [1, 2, 4, 8].map { shrink in
      PlaneResizer.byteCount(
        horizontal: axis(options.width, from: options.width, to: max(1, options.width / shrink), scale: 1),
        vertical: axis(options.height, from: options.height, to: max(1, options.height / shrink), scale: 1),
        format: format)
    }
    return estimatedByteCount(options, halvesChroma: true) + (resizers.max() ?? 0) * 5 / 4 + 4096
      + 2 * options.width * PixelFormat.premultipliedRGBA16.pixelByteCount
  }

  private func fill(plane index: Int, from rows: Strip.Rows, of source: EncoderOptions) throws(CodecError) {
    let format: PixelFormat = options.pixelFormat == .rgba8 ? .premultipliedRGBA16 : options.pixelFormat
    let scale = index == 0 ? (1, 1) : (options.subsampling.horizontalScale, options.subsampling.verticalScale)
    let columnCount = rows.rowStride / options.pixelFormat.pixelByteCount
    let resizer = try PlaneResizer(
      horizontal: Self.axis(columnCount, from: source.width, to: options.width, scale: scale.0),
      vertical: Self.axis(rows.rowCount, from: source.height, to: options.height, scale: scale.1),
      format: format, budget: budget)
    let alpha = format == .premultipliedRGBA16 ? try AlphaRows(source.width, options.width, budget) : nil
    var waiting = rows
    while true {
      let taken = resizer.push(alpha?.premultiplied(waiting) ?? waiting)
      waiting.dropFirst(taken)
      let ready = resizer.read()
      if ready.rowCount == 0, taken == 0 { return }
      guard let alpha else {
        append(ready, plane: index)
        continue
      }
      for portion in ready.portions(of: 1) { append(alpha.unpremultiplied(portion), plane: index) }
    }
  }

  private static func axis(_ sampleCount: Int, from source: Int, to destination: Int, scale: Double) -> AxisGeometry {
    AxisGeometry(
      sourceCount: sampleCount, sourceScale: scale, sourceLength: Double(source), destinationScale: scale,
      destinationLength: destination, isReversed: false)
  }
}

/// A row with its colours multiplied by alpha on its way to the resampler, and one with them divided on its way back.
private struct AlphaRows {
  private let source: PixelBuffer
  private let result: PixelBuffer
  private let sourceWidth: Int
  private let resultWidth: Int

  init(_ sourceWidth: Int, _ resultWidth: Int, _ budget: PictureBudget) throws(CodecError) {
    (self.sourceWidth, self.resultWidth) = (sourceWidth, resultWidth)
    source = try PixelBuffer(
      byteCount: sourceWidth * PixelFormat.premultipliedRGBA16.pixelByteCount, budget: budget)
    result = try PixelBuffer(byteCount: resultWidth * PixelFormat.rgba8.pixelByteCount, budget: budget)
  }

  /// The first of the rows, if there is one.
  func premultiplied(_ rows: Strip.Rows) -> Strip.Rows {
    guard rows.rowCount > 0 else { return rows }
    cpixels_premultiply(
      rows.row(0), source.base.assumingMemoryBound(to: UInt16.self), sourceWidth, CPIXELS_ISA_BEST)
    return Strip.Rows(base: UnsafeRawPointer(source.base), rowStride: source.byteCount, rowCount: 1)
  }

  func unpremultiplied(_ rows: Strip.Rows) -> Strip.Rows {
    cpixels_unpremultiply(
      rows.base.assumingMemoryBound(to: UInt16.self), result.base.assumingMemoryBound(to: UInt8.self), resultWidth,
      CPIXELS_ISA_BEST)
    return Strip.Rows(base: UnsafeRawPointer(result.base), rowStride: result.byteCount, rowCount: 1)
  }
}
