internal import ImageCodecs

/// Estimates of the memory that the stages between decoder and encoder charge.
///
/// Callers rely on the bound, and it determines how many images are admitted at once, so it must be close. Tests
/// require that it is at least the charged amount and at most twice that, over the whole image corpus.
extension Plan {
  /// The bytes that the budget adds to align blocks: up to 128 for each of about sixty blocks.
  static let blockOverhead = 8192

  /// Returns an upper bound of the bytes that the stages charge, by their own estimates for the expected layout of
  /// decoded rows.
  func stagesByteCount(header: ImageHeader) throws(PipelineError) -> UInt64 {
    var layout = expectedLayout(header)
    let masking = RegionMask.byteCount(hidden, layout: layout)
    let stages = Pipeline.stages(of: self).estimatedByteCount(&layout)
    return UInt64(Self.blockOverhead + masking + stages) + (try EncodeStage(self).estimatedByteCount())
  }

  /// Returns the layout of the decoder's rows as far as the header determines it; otherwise a larger one.
  func expectedLayout(_ header: ImageHeader) -> PixelLayout {
    let scale = Double(decodeScale) / 8
    func plane(across: Int, down: Int) -> PlaneLayout {
      PlaneLayout(
        width: (storedSize.width * decodeScale + 8 * across - 1) / (8 * across),
        height: (storedSize.height * decodeScale + 8 * down - 1) / (8 * down),
        horizontalScale: scale / Double(across), verticalScale: scale / Double(down))
    }
    let first = plane(across: 1, down: 1)
    func packed(_ format: PixelFormat) -> PixelLayout {
      PixelLayout(format: header.is16Bit ? format.deep : format, planes: [first])
    }
    if header.hasAlpha { return packed(.rgba8) }
    switch header.colorSpace {
    case .ycbcr:
      let chroma = header.chromaSampling.map { plane(across: $0.across, down: $0.down) } ?? first
      return PixelLayout(format: .ycc8, planes: [first, chroma, chroma])
    case .cmyk, .ycck: return packed(profileFormat == .cmyk8 ? .cmyk8 : .rgb8)
    case .gray where encoder.pixelFormat == .gray8: return packed(.gray8)
    case .gray, .rgb: return packed(.rgb8)
    }
  }
}
