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
    var decoding = decoderByteCount.fixed + decoderByteCount.column * options.width
    // Coefficients, the whole bitmap of libheif, or the alpha of libwebp.
    if options.jpeg.isProgressive ?? false { decoding += 8 * pixelCount }
    if options.format.traits.usesLibraryThreads { decoding += 24 * pixelCount }
    if options.pixelFormat.hasAlpha { decoding += 2 * pixelCount }
    return decoding + RowComparison.estimatedByteCount(options)
  }
}

/// Compares the decoded rows of a trial with the rows from which it was encoded.
final class RowComparison {
  private static let rowCount = 16

  private let image: BufferedImage
  private let similarity: ImageSimilarity
  /// Enlarge the planes that are smaller than the image; empty for packed pixels.
  private let resizers: [PlaneResizer?]
  private let merger: YCCMerger?
  private var comparedRowCount = 0

  /// Creates a comparison.
  /// - `layout`: The layout of the decoded rows.
  init(_ image: BufferedImage, layout: PixelLayout, budget: ImageBudget) throws(CodecError) {
    let (width, height) = (image.options.width, image.options.height)
    self.image = image
    let isPlanar = layout.format == .ycc8
    similarity = try ImageSimilarity(
      width: width, height: height, format: image.options.pixelFormat, resultFormat: isPlanar ? .rgb8 : layout.format,
      budget: budget)
    merger = isPlanar ? try YCCMerger(width: width, budget: budget) : nil
    var resizers: [PlaneResizer?] = []
    for plane in isPlanar ? layout.planes : [] {
      let isSmaller = plane.width != width || plane.height != height
      resizers.append(
        isSmaller
          ? try PlaneResizer(
            horizontal: Self.axis(plane.width, scale: plane.horizontalScale, length: width),
            vertical: Self.axis(plane.height, scale: plane.verticalScale, length: height), format: .gray8,
            budget: budget) : nil)
    }
    self.resizers = resizers
  }

  /// Returns an upper bound of the bytes that the comparison of a result with these options charges.
  static func estimatedByteCount(_ options: EncoderOptions) -> Int {
    let (width, height) = (options.width, options.height)
    let chroma = PlaneResizer.byteCount(
      horizontal: axis((width + 1) / 2, scale: 0.5, length: width),
      vertical: axis((height + 1) / 2, scale: 0.5, length: height), format: .gray8)
    return ImageSimilarity.estimatedByteCount(width: width, height: height, format: options.pixelFormat)
      + YCCMerger.estimatedByteCount(width: width) + 2 * chroma
  }

  /// Whether all rows were compared.
  var isComplete: Bool { comparedRowCount == image.options.height }

  /// The score of the trial; must be read after all rows were compared.
  var score: Double { similarity.score }

  /// Compares the next decoded rows.
  func push(_ strip: borrowing Strip) throws(CodecError) {
    guard merger != nil else { return try compare(strip.plane(0)) }
    var waiting = (0..<3).map { strip.plane($0) }
    while true {
      var finished = waiting.map { $0.prefix(0) }
      var isIdle = true
      for index in 0..<3 {
        let taken: Int
        if let resizer = resizers[index] {
          taken = resizer.push(waiting[index])
          finished[index] = resizer.read()
        } else {
          finished[index] = waiting[index].prefix(Self.rowCount)
          taken = finished[index].rowCount
        }
        waiting[index].dropFirst(taken)
        if taken > 0 || !finished[index].isEmpty { isIdle = false }
      }
      if isIdle { return }
      try merge(&finished)
    }
  }

  private func merge(_ planes: inout [Strip.Rows]) throws(CodecError) {
    guard let merger else { return }
    while planes.contains(where: { !$0.isEmpty }) {
      try merger.push(&planes)
      while true {
        let rows = merger.read()
        if rows.isEmpty { break }
        try compare(rows)
      }
    }
  }

  private func compare(_ rows: Strip.Rows) throws(CodecError) {
    let all = try image.rows(image.options)[0]
    let count = min(rows.rowCount, all.rowCount - comparedRowCount)
    similarity.push(
      reference: all.part(first: comparedRowCount, count: count, byteOffset: 0, byteCount: all.rowByteCount),
      result: rows.prefix(count))
    comparedRowCount += count
  }

  private static func axis(_ sampleCount: Int, scale: Double, length: Int) -> AxisGeometry {
    AxisGeometry(
      sourceCount: sampleCount, sourceScale: scale, sourceLength: Double(length), destinationScale: 1,
      destinationLength: length, isReversed: false,
      enlargement: AxisGeometry.Enlargement(isChroma: true, width: sampleCount))
  }
}
