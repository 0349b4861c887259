internal import ImageCodecs

/// How large chroma planes are beside the luma plane.
package enum ChromaSubsampling: String, Sendable, Hashable, CaseIterable {
  /// As large.
  case full = "444"
  /// Half the width.
  case half = "422"
  /// Half the width and half the height.
  case quarter = "420"

  fileprivate var encoded: EncoderOptions.ChromaSubsampling {
    switch self {
    case .full: .full
    case .half: .half
    case .quarter: .quarter
    }
  }
}

/// How rows of a PNG are told by their neighbours before they are compressed.
package enum PNGFilter: String, Sendable, Hashable, CaseIterable {
  /// For each row the one that promises most.
  case adaptive
  case unfiltered = "none"
  case sub, up, average, paeth

  fileprivate var encoded: EncoderOptions.PNGFilter {
    switch self {
    case .adaptive: .adaptive
    case .unfiltered: .unfiltered
    case .sub: .sub
    case .up: .up
    case .average: .average
    case .paeth: .paeth
    }
  }
}

/// What a caller asks of a JPEG; without effect on results in other formats.
package struct JPEGOptions: Sendable, Hashable {
  /// Default: no.
  package var isProgressive: Bool?
  /// Default: by the quality.
  package var chromaSubsampling: ChromaSubsampling?
  /// Whether Huffman tables are made for the picture.
  ///
  /// Default: no.
  package var optimizesHuffman: Bool?
  /// Rows of MCUs between restart markers, 0 to 65535; 0 for none.
  ///
  /// Default: 0.
  package var restartRows: Int?

  package init(
    isProgressive: Bool? = nil, chromaSubsampling: ChromaSubsampling? = nil,
    optimizesHuffman: Bool? = nil, restartRows: Int? = nil
  ) {
    self.isProgressive = isProgressive
    self.chromaSubsampling = chromaSubsampling
    self.optimizesHuffman = optimizesHuffman
    self.restartRows = restartRows
  }

  func overridden(by other: JPEGOptions) -> JPEGOptions {
    JPEGOptions(
      isProgressive: other.isProgressive ?? isProgressive,
      chromaSubsampling: other.chromaSubsampling ?? chromaSubsampling,
      optimizesHuffman: other.optimizesHuffman ?? optimizesHuffman, restartRows: other.restartRows ?? restartRows)
  }

  func validate() throws(PipelineError) {
    try check(restartRows, in: 0...65_535, "jpeg.restart_rows")
  }
}

/// What a caller asks of a PNG; without effect on results in other formats.
package struct PNGOptions: Sendable, Hashable {
  /// 0 (fastest) to 9 (smallest).
  ///
  /// Default: 3.
  package var compressionLevel: Int?
  /// Default: no.
  package var isInterlaced: Bool?
  /// Most colours of a palette, 2 to 256; 0 for none.
  ///
  /// Default: 0.
  package var paletteColors: Int?
  /// Default: `adaptive`, with a palette `none`.
  package var filter: PNGFilter?

  package init(
    compressionLevel: Int? = nil, isInterlaced: Bool? = nil, paletteColors: Int? = nil,
    filter: PNGFilter? = nil
  ) {
    self.compressionLevel = compressionLevel
    self.isInterlaced = isInterlaced
    self.paletteColors = paletteColors
    self.filter = filter
  }

  func overridden(by other: PNGOptions) -> PNGOptions {
    PNGOptions(
      compressionLevel: other.compressionLevel ?? compressionLevel, isInterlaced: other.isInterlaced ?? isInterlaced,
      paletteColors: other.paletteColors ?? paletteColors, filter: other.filter ?? filter)
  }

  func validate() throws(PipelineError) {
    try check(compressionLevel, in: 0...9, "png.compression_level")
    if let colors = paletteColors, colors != 0, !(2...256).contains(colors) {
      throw PipelineError(
        .invalidField, "png.palette_colors is \(colors); it must be 0 or between 2 and 256", field: "png.palette_colors"
      )
    }
    if (paletteColors ?? 0) > 0, !EncoderOptions.PNG.hasPalettes {
      throw PipelineError(
        .unservedField, "png.palette_colors: palettes are not built into this worker", field: "png.palette_colors")
    }
  }
}

/// What a caller asks of a WebP; without effect on results in other formats.
package struct WebPOptions: Sendable, Hashable {
  /// Default: no.
  package var isLossless: Bool?
  /// 0 (smallest) to 100 (the picture itself); below 100 the file is lossless.
  ///
  /// Default: 100.
  package var nearLossless: Int?
  /// 0 (fastest) to 6 (smallest).
  ///
  /// Default: 4.
  package var method: Int?

  package init(isLossless: Bool? = nil, nearLossless: Int? = nil, method: Int? = nil) {
    self.isLossless = isLossless
    self.nearLossless = nearLossless
    self.method = method
  }

  func overridden(by other: WebPOptions) -> WebPOptions {
    WebPOptions(
      isLossless: other.isLossless ?? isLossless, nearLossless: other.nearLossless ?? nearLossless,
      method: other.method ?? method)
  }

  func validate() throws(PipelineError) {
    try check(nearLossless, in: 0...100, "webp.near_lossless")
    try check(method, in: 0...6, "webp.method")
  }
}

private func check(_ value: Int?, in range: ClosedRange<Int>, _ field: String) throws(PipelineError) {
  guard let value, !range.contains(value) else { return }
  throw PipelineError(
    .invalidField, "\(field) is \(value); it must be between \(range.lowerBound) and \(range.upperBound)", field: field)
}

extension EncoderOptions {
  /// Lossy WebP of more pixels is made in less memory, and takes longer.
  private static let quickWebPPixelCount = 1 << 22

  /// Whether more is asked of the file than that it holds the picture: how that is coded, at other than default cost.
  func asksForCoding(_ configuration: ProcessingConfiguration) -> Bool {
    switch format.traits.output?.optionGroup {
    case .jpeg: jpeg != JPEG() || asksForChroma(configuration)
    case .png: png != PNG()
    case .webp: webp.nearLossless != 100 || webp.method != WebP().method
    case nil: false
    }
  }

  /// Whether the size of chroma planes is asked for.
  func asksForChroma(_ configuration: ProcessingConfiguration) -> Bool {
    switch format.traits.output?.optionGroup {
    case .jpeg: configuration.jpeg?.chromaSubsampling != nil
    case .png, .webp, nil: false
    }
  }

  /// Takes what was asked for the format that these options have.
  mutating func apply(_ configuration: ProcessingConfiguration) {
    switch format.traits.output?.optionGroup {
    case .jpeg: apply(configuration.jpeg ?? JPEGOptions())
    case .png: apply(configuration.png ?? PNGOptions())
    case .webp: apply(configuration.webp ?? WebPOptions())
    case nil: break
    }
  }

  private mutating func apply(_ asked: JPEGOptions) {
    subsampling = asked.chromaSubsampling?.encoded ?? subsampling
    jpeg.isProgressive = asked.isProgressive ?? false
    jpeg.hasOptimalTables = asked.optimizesHuffman ?? false
    jpeg.restartRowCount = asked.restartRows ?? 0
  }

  private mutating func apply(_ asked: PNGOptions) {
    png.compressionLevel = asked.compressionLevel ?? png.compressionLevel
    png.isInterlaced = asked.isInterlaced ?? false
    png.paletteCount = asked.paletteColors ?? 0
    png.filter = asked.filter?.encoded ?? (png.paletteCount > 0 ? .unfiltered : .adaptive)
  }

  private mutating func apply(_ asked: WebPOptions) {
    webp.nearLossless = asked.nearLossless ?? 100
    webp.isLossless = asked.isLossless ?? false || webp.nearLossless < 100
    webp.method = asked.method ?? webp.method
    webp.savesMemory = width * height > Self.quickWebPPixelCount
  }
}
