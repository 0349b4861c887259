internal import ImageCodecs
internal import ImageKernels

extension BufferedImage {
  /// Returns a copy of this image, scaled down to the size of `options`.
  /// - `options`: The options of the encoder that receives the copy.
  func scaled(_ options: EncoderOptions) throws(CodecError) -> BufferedImage {
    var buffered = options
    buffered.pixelFormat = self.options.pixelFormat
    let smaller = try BufferedImage(options: buffered, budget: budget)
    for (index, rows) in try rows(options).enumerated() { try smaller.fill(plane: index, from: rows, of: self.options) }
    return smaller
  }

  /// Returns an upper bound of the bytes charged for a smaller copy and for producing it.
  static func smallerByteCount(_ options: EncoderOptions) -> Int {
    let format: PixelFormat = options.pixelFormat == .rgba8 ? .premultipliedRGBA16 : options.pixelFormat
    // A resampler for a smaller result has wider windows but shorter rows, so its memory varies little.
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
    let columnCount = rows.rowByteCount / options.pixelFormat.pixelByteCount
    let resizer = try PlaneResizer(
      horizontal: Self.axis(columnCount, from: source.width, to: options.width, scale: scale.0),
      vertical: Self.axis(rows.rowCount, from: source.height, to: options.height, scale: scale.1),
      format: format, budget: budget)
    let alpha =
      format == .premultipliedRGBA16
      ? (
        premultiplier: try Premultiplier(.rgba8, width: source.width, rowCount: 1, budget: budget),
        divider: try PixelConverter(from: format, to: .rgba8, width: options.width, rowCount: 1, budget: budget)
      ) : nil
    var waiting = rows
    while true {
      let taken = resizer.push(alpha?.premultiplier.premultiply(waiting.prefix(1)) ?? waiting)
      waiting.dropFirst(taken)
      let ready = resizer.read()
      if ready.isEmpty, taken == 0 { return }
      guard let alpha else {
        append(ready, plane: index)
        continue
      }
      for portion in ready.portions(of: 1) { append(alpha.divider.convert(portion), plane: index) }
    }
  }

  private static func axis(_ sampleCount: Int, from source: Int, to destination: Int, scale: Double) -> AxisGeometry {
    AxisGeometry(
      sourceCount: sampleCount, sourceScale: scale, sourceLength: Double(source), destinationScale: scale,
      destinationLength: destination, isReversed: false)
  }
}
