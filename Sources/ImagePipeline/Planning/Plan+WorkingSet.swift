internal import ImageCodecs

/// What the stages between decoder and encoder will charge.
///
/// A bound on what an image holds is of use to a caller, and lets as many images in as there is memory for, only when
/// it is near: it is held to no less than what was charged, and no more than twice that, over every image there is.
extension Plan {
  /// What the budget adds to blocks for their alignment: up to 128 bytes for each of some sixty.
  private static let blockOverhead = 8192

  /// An upper bound: what the stages charge by their own account, for the rows that the decoder is expected to give.
  func stagesByteCount(header: ImageHeader) throws(PipelineError) -> UInt64 {
    UInt64(Self.blockOverhead) + (try Pipeline.stages(of: self).estimatedByteCount(expectedLayout(header)))
  }

  /// The layout that the decoder will give, as far as the header tells it; else a larger one.
  private func expectedLayout(_ header: ImageHeader) -> PixelLayout {
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
