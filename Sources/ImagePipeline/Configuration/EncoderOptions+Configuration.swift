internal import ImageCodecs

extension EncoderOptions {
  /// The pixel count above which lossy WebP is encoded in a mode that needs less memory and more time.
  private static let quickWebPPixelCount = 1 << 22

  /// Whether the configuration specifies coding options, which only encoding can satisfy.
  var asksForCoding: Bool {
    // Options of other formats have their default values: see `apply`. AVIF and JPEG XL are always encoded.
    jpeg.asksForCoding || png.asksForCoding || webp.asksForCoding || asksForChroma
  }

  /// Whether the configuration specifies the chroma subsampling.
  var asksForChroma: Bool { jpeg.chromaSubsampling != nil }

  /// Applies the options of the configuration for the format of these options.
  mutating func apply(_ configuration: ProcessingConfiguration) {
    switch format.traits.output?.optionGroup {
    case .jpeg:
      jpeg = configuration.jpeg ?? JPEGOptions()
      subsampling = jpeg.chromaSubsampling ?? subsampling
    case .png: png = configuration.png ?? PNGOptions()
    case .webp:
      webp = configuration.webp ?? WebPOptions()
      savesMemory = width * height > Self.quickWebPPixelCount
    case .avif: avif = configuration.avif ?? AVIFOptions()
    case .jxl: jxl = configuration.jxl ?? JXLOptions()
    case .tensor: tensor = configuration.tensor ?? TensorOptions()
    case nil: break
    }
  }

  /// Applies an effort to those options that the configuration does not set.
  mutating func apply(_ effort: AutoEffort, _ configuration: ProcessingConfiguration) {
    guard effort != .medium else { return }
    let isLow = effort == .low
    switch format.traits.output?.optionGroup {
    case .avif: avif.effort = configuration.avif?.effort ?? (isLow ? 0 : 5)
    case .jxl: jxl.effort = configuration.jxl?.effort ?? (isLow ? 1 : 7)
    case .webp: webp.method = configuration.webp?.method ?? (isLow ? 2 : 6)
    case .png: png.compressionLevel = configuration.png?.compressionLevel ?? (isLow ? 2 : 9)
    case .jpeg, .tensor, nil: break
    }
  }
}
