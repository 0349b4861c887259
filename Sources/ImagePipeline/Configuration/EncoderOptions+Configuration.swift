internal import ImageCodecs

extension EncoderOptions {
  /// Lossy WebP of more pixels is encoded in less memory, and takes longer.
  private static let quickWebPPixelCount = 1 << 22

  /// Whether a caller asks for another coding of the file than the default one.
  var asksForCoding: Bool {
    // Options of other formats are as by default: see `apply`.
    jpeg.asksForCoding || png.asksForCoding || webp.asksForCoding || asksForChroma
  }

  /// Whether the size of chroma planes is asked for.
  var asksForChroma: Bool { jpeg.chromaSubsampling != nil }

  /// Takes what a caller asks for of the format that these options have.
  mutating func apply(_ configuration: ProcessingConfiguration) {
    switch format.traits.output?.optionGroup {
    case .jpeg:
      jpeg = configuration.jpeg ?? JPEGOptions()
      subsampling = jpeg.chromaSubsampling ?? subsampling
    case .png: png = configuration.png ?? PNGOptions()
    case .webp:
      webp = configuration.webp ?? WebPOptions()
      savesMemory = width * height > Self.quickWebPPixelCount
    case nil: break
    }
  }
}
