internal import CCodecs

/// An image file format that the worker decodes, or recognises well enough to name in a refusal.
///
/// What is known of a format stands in two rows: `traits` here, and that of `formats.c`, which has its name, signature,
/// decoder, encoder and rewriter.
package enum ImageFormat: String, Sendable, Hashable, CaseIterable {
  case jpeg, png, webp, gif, bmp, tga, psd, pnm, hdr
  case tiff, avif, heic, jxl, jpeg2000, ico, qoi

  /// How many first bytes settle the format of any file.
  package static let sniffByteCount = Int(CCODECS_SNIFF_BYTES)

  /// The format of a file from its first `sniffByteCount` bytes, or all there are; `nil` when no format matches.
  package static func sniff(_ bytes: RawSpan) -> ImageFormat? {
    ImageFormat(bytes.withUnsafeBytes { ccodecs_sniff($0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count) })
  }

  /// Whether a `Decoder` can be made for this format.
  package var isDecodable: Bool { ccodecs_format_can_decode(handle) }

  /// Whether an `Encoder` can be made for this format.
  package var isEncodable: Bool { ccodecs_format_can_encode(handle) }

  /// Whether a `Rewriter` can be made for this format.
  package var isRewritable: Bool { ccodecs_format_can_rewrite(handle) }

  /// Whether an encoder of this format, if one was built in, takes rows of `pixelFormat`.
  package func takes(_ pixelFormat: PixelFormat) -> Bool {
    pixelFormat.handle.map { ccodecs_format_takes(handle, $0) } ?? false
  }

  init?(_ handle: ccodecs_format) {
    guard let match = ImageFormat.allCases.first(where: { $0.handle == handle }) else { return nil }
    self = match
  }

  var handle: ccodecs_format { traits.handle }
}

extension ImageFormat {
  /// How the size of a file falls with the quality that it is compressed at.
  package enum SizeCurve: Sendable, Hashable {
    /// With the scale of libjpeg's quantisation tables.
    case libjpeg
    /// With libwebp's quantiser.
    case libwebp
    /// With the quality itself.
    case linear
  }

  /// The fields of `EncoderOptions` that are of one format alone.
  package enum OptionGroup: Sendable, Hashable {
    case jpeg, png, webp
  }

  /// A format as that of results.
  package struct Output: Sendable {
    /// Of file names, without the dot.
    package let fileExtension: String
    /// `nil` for a format that is always lossless.
    package let sizeCurve: SizeCurve?
    /// `nil` for a format without options of its own.
    package var optionGroup: OptionGroup?
    /// Whether the encoder subsamples chroma as `EncoderOptions.subsampling` says.
    package var subsamplesChroma = false
    /// Whether results that need not be of this format are JPEG or PNG where its encoder needs too much memory.
    package var hasFallback = false
  }

  /// What is known of a format besides its codecs.
  package struct Traits: Sendable {
    let handle: ccodecs_format
    /// Whether its library works on threads of its own.
    package var usesLibraryThreads = false
    /// Whether further images in a file only go with the first, as previews and gain maps do.
    package var hasCompanionImages = false
    /// Whether metadata may stand behind the image's rows.
    package var hasTrailingMetadata = false
    /// `nil` for a format that is only read.
    package var output: Output?
  }

  /// The row of this format.
  package var traits: Traits {
    switch self {
    case .jpeg:
      Traits(
        handle: CCODECS_FORMAT_JPEG, hasCompanionImages: true,
        output: Output(fileExtension: "jpg", sizeCurve: .libjpeg, optionGroup: .jpeg, subsamplesChroma: true))
    case .png:
      Traits(
        handle: CCODECS_FORMAT_PNG, hasTrailingMetadata: true,
        output: Output(fileExtension: "png", sizeCurve: nil, optionGroup: .png))
    case .webp:
      Traits(
        handle: CCODECS_FORMAT_WEBP,
        output: Output(fileExtension: "webp", sizeCurve: .libwebp, optionGroup: .webp))
    case .avif:
      Traits(
        handle: CCODECS_FORMAT_AVIF, usesLibraryThreads: true,
        output: Output(fileExtension: "avif", sizeCurve: .linear, subsamplesChroma: true, hasFallback: true))
    case .heic: Traits(handle: CCODECS_FORMAT_HEIC, usesLibraryThreads: true)
    case .gif: Traits(handle: CCODECS_FORMAT_GIF)
    case .bmp: Traits(handle: CCODECS_FORMAT_BMP)
    case .tga: Traits(handle: CCODECS_FORMAT_TGA)
    case .psd: Traits(handle: CCODECS_FORMAT_PSD)
    case .pnm: Traits(handle: CCODECS_FORMAT_PNM)
    case .hdr: Traits(handle: CCODECS_FORMAT_HDR)
    case .tiff: Traits(handle: CCODECS_FORMAT_TIFF)
    case .jxl: Traits(handle: CCODECS_FORMAT_JXL)
    case .jpeg2000: Traits(handle: CCODECS_FORMAT_JPEG2000)
    case .ico: Traits(handle: CCODECS_FORMAT_ICO)
    case .qoi: Traits(handle: CCODECS_FORMAT_QOI)
    }
  }
}
