internal import ImageCodecs
internal import ImageKernels

/// Decodes a trial and measures its similarity to the rows from which it was encoded.
enum SimilarityTrial {
  /// Returns the score of a complete trial.
  /// - Parameters:
  ///   - bytes: The trial, which fits its limit.
  ///   - options: The options of its encoder.
  ///   - image: The rows from which it was encoded, in one plane.
  ///   - budget: Charged for the decoder and the comparison.
  ///   - allowance: Checked for each chunk.
  /// - Returns: The score, at most 100.
  /// - Throws: `limitExceeded`, `cancelled`.
  static func score(
    of bytes: CompressedBytes, options: EncoderOptions, image: BufferedImage, budget: ImageBudget,
    _ allowance: WorkAllowance
  ) throws(PipelineError) -> Double {
    let pixelCount = UInt64(options.width) * UInt64(options.height)
    let limits = CodecLimits(maxPixels: pixelCount, maxBufferedPixels: pixelCount, maxScans: 100)
    var decoder = try withCodecErrors { () throws(CodecError) in
      try Decoder(format: options.format, limits: limits, budget: budget)
    }
    var comparison: RowComparison?
    try bytes.forEachChunk { (chunk, isLast) throws(PipelineError) in
      do throws(CodecError) {
        var rest = chunk
        if comparison == nil {
          let progress = try decoder.readHeader(rest, isLast: isLast)
          rest = rest.extracting(droppingFirst: progress.consumedByteCount)
          guard progress.value else { return }
          comparison = try RowComparison(image, layout: decoder.start(scale: 8, returnsRGB: true), budget: budget)
        }
        while let current = comparison, !current.isComplete {
          let progress = try decoder.read(rest, isLast: isLast)
          rest = rest.extracting(droppingFirst: progress.consumedByteCount)
          guard progress.value == .stripReady else { break }
          try decoder.withStrip { (strip) throws(CodecError) in try current.push(strip) }
        }
      } catch { throw PipelineError(error) }
      try allowance.check()
    }
    guard let comparison, comparison.isComplete else {
      throw PipelineError(.internalDefect, "a trial of \(options.format.rawValue) cannot be decoded")
    }
    return comparison.score
  }

  /// The bytes of a decoder that do not depend on the size of the image, and those for each column.
  private static let decoderByteCount = (fixed: 1 << 20, column: 512)

  /// Returns an upper bound of the bytes that decoding and comparing a trial charges.
  static func estimatedByteCount(_ options: EncoderOptions) -> Int {
    let pixelCount = options.width * options.height
    var decoding = decoderByteCount.fixed + decoderByteCount.column * options.width + 4 * options.metadata.byteCount
    if let library = options.format.traits.output?.decodingByteCounts {
      decoding += library.fixed + library.pixel * pixelCount
    }
    // Coefficients, or the alpha of libwebp.
    if options.jpeg.isProgressive ?? false { decoding += 8 * pixelCount }
    if options.pixelFormat.hasAlpha { decoding += 2 * pixelCount }
    return decoding + RowComparison.estimatedByteCount(options)
  }
}

/// Compares the decoded rows of a trial with the rows from which it was encoded.
final class RowComparison {
  private let image: BufferedImage
  private let similarity: ImageSimilarity
  /// Merges decoded planes; `nil` for packed pixels.
  private var merger: PlaneMerger?
  private var comparedRowCount = 0

  /// Creates a comparison.
  /// - `layout`: The layout of the decoded rows.
  init(_ image: BufferedImage, layout: PixelLayout, budget: ImageBudget) throws(CodecError) {
    let isPlanar = layout.format == .ycc8
    self.image = image
    similarity = try ImageSimilarity(
      width: image.options.width, height: image.options.height, format: image.options.pixelFormat,
      resultFormat: isPlanar ? .rgb8 : layout.format, budget: budget)
    merger = isPlanar ? try PlaneMerger(layout, doubles: false, budget: budget) : nil
  }

  /// Returns an upper bound of the bytes that the comparison of a result with these options charges.
  static func estimatedByteCount(_ options: EncoderOptions) -> Int {
    let (width, height) = (options.width, options.height)
    let chroma = PlaneLayout(
      width: (width + 1) / 2, height: (height + 1) / 2, horizontalScale: 0.5, verticalScale: 0.5)
    let layout = PixelLayout(format: .ycc8, planes: [PlaneLayout(width: width, height: height), chroma, chroma])
    return ImageSimilarity.estimatedByteCount(width: width, height: height, format: options.pixelFormat)
      + PlaneMerger.estimatedByteCount(layout)
  }

  /// Whether all rows were compared.
  var isComplete: Bool { comparedRowCount == image.options.height }

  /// The score of the trial; must be read after all rows were compared.
  var score: Double { similarity.score }

  /// Compares the next decoded rows.
  func push(_ strip: borrowing Strip) throws(CodecError) {
    guard merger != nil else { return try compare(strip.plane(0)) }
    merger?.push(strip)
    while let rows = try merger?.read(), !rows.isEmpty { try compare(rows) }
  }

  private func compare(_ rows: Strip.Rows) throws(CodecError) {
    let all = try image.rows(image.options)[0]
    let count = min(rows.rowCount, all.rowCount - comparedRowCount)
    similarity.push(
      reference: all.part(first: comparedRowCount, count: count, byteOffset: 0, byteCount: all.rowByteCount),
      result: rows.prefix(count))
    comparedRowCount += count
  }
}
