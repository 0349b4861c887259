internal import CCodecs

/// An image file format that the worker decodes, or recognizes in order to name it in an error message.
///
/// Each format has two rows: `traits` here, and a row in `formats.c` with the name, signature, decoder, encoder and
/// rewriter.
package enum ImageFormat: String, Sendable, Hashable, CaseIterable {
  case jpeg, png, webp, gif, bmp, tga, psd, pnm, hdr
  case tiff, avif, heic, jxl, jpeg2000, ico, qoi
  /// The elements of a tensor, without a header; only a result.
  case raw

  /// The number of bytes at the start of a file that are enough to detect any format.
  package static let sniffByteCount = Int(CCODECS_SNIFF_BYTES)

  /// Returns the format of a file, or `nil` if no format matches.
  /// - `bytes`: the first `sniffByteCount` bytes of the file, or all of a shorter file.
  package static func sniff(_ bytes: RawSpan) -> ImageFormat? {
    ImageFormat(bytes.withUnsafeBytes { ccodecs_sniff($0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count) })
  }

  /// Whether this format has a decoder.
  package var isDecodable: Bool { ccodecs_format_can_decode(handle) }

  /// Whether this format has an encoder.
  package var isEncodable: Bool { ccodecs_format_can_encode(handle) }

  /// Whether the encoder of this format, if one was built in, can store several frames.
  package var storesFrames: Bool { ccodecs_format_has_frames(handle) }

  /// Whether this format has a rewriter.
  package var isRewritable: Bool { ccodecs_format_can_rewrite(handle) }

  /// Returns whether the encoder of this format, if one was built in, accepts rows of `pixelFormat`.
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
  /// The relation between the quality of a lossy file and its size.
  package enum SizeCurve: Sendable, Hashable {
    /// The size follows the scale of libjpeg's quantisation tables.
    case libjpeg
    /// The size follows libwebp's quantiser.
    case libwebp
    /// The size follows libjxl's distance from the image.
    case libjxl
    /// The size is linear in the quality.
    case linear
  }

  /// A group of fields in `EncoderOptions` that applies to one format only.
  package enum OptionGroup: Sendable, Hashable {
    case jpeg, png, webp, avif, jxl, tensor
  }

  /// The results that keep the format of their image if none is requested.
  package enum Keeping: Sendable, Hashable {
    case all, animations, never
  }

  /// The properties of a format that results can have.
  package struct Output: Sendable {
    /// The file name extension, without the dot.
    package let fileExtension: String
    /// The relation between quality and size; `nil` for a format that is always lossless.
    package let sizeCurve: SizeCurve?
    /// The format's own options; `nil` if it has none.
    package var optionGroup: OptionGroup?
    /// Whether the encoder applies `EncoderOptions.subsampling` to chroma.
    package var subsamplesChroma = false
    /// Whether the number of colors of a result with several frames can be reduced.
    package var reducesColors = false
    /// The results for which ORIGINAL keeps the format.
    package var keeping = Keeping.all
    /// Bytes that decoding a result takes beside its rows, in all and for each pixel.
    package var decodingByteCounts = (fixed: 0, pixel: 0)
    /// About the size in bytes of a result of few pixels, without metadata.
    package var fixedByteCount = 64
    /// Whether results are files that programs show and recognize.
    package var isImageFile = true
    /// Whether the encoder writes color profiles.
    package var containsProfiles = true
    /// Whether a result may fall back to JPEG or PNG when this encoder needs too much memory.
    ///
    /// The fallback is only used if the client did not require the format.
    package var hasFallback = false
  }

  /// The properties of a format, other than its codecs.
  package struct Traits: Sendable {
    let handle: ccodecs_format
    /// Whether the format's library starts its own threads.
    package var usesLibraryThreads = false
    /// Whether further images in a file only accompany the first one, as previews and gain maps do.
    package var hasCompanionImages = false
    /// Whether several images in a file are the frames of an animation, of which only the first is decoded.
    package var hasSequences = false
    /// Whether metadata may follow the image data.
    package var hasTrailingMetadata = false
    /// The properties as an output format; `nil` for a format that is only decoded.
    package var output: Output?
  }

  /// The properties of this format.
  package var traits: Traits {
    switch self {
    case .jpeg:
      Traits(
        handle: CCODECS_FORMAT_JPEG, hasCompanionImages: true,
        output: Output(
          fileExtension: "jpg", sizeCurve: .libjpeg, optionGroup: .jpeg, subsamplesChroma: true,
          fixedByteCount: 330))
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
        handle: CCODECS_FORMAT_AVIF, usesLibraryThreads: true, hasSequences: true,
        output: Output(
          fileExtension: "avif", sizeCurve: .linear, optionGroup: .avif, subsamplesChroma: true,
          decodingByteCounts: (0, 24), fixedByteCount: 290, hasFallback: true))
    case .heic: Traits(handle: CCODECS_FORMAT_HEIC, usesLibraryThreads: true, hasSequences: true)
    case .gif:
      Traits(
        handle: CCODECS_FORMAT_GIF,
        output: Output(
          fileExtension: "gif", sizeCurve: nil, reducesColors: true, keeping: .animations, containsProfiles: false))
    case .bmp: Traits(handle: CCODECS_FORMAT_BMP)
    case .tga: Traits(handle: CCODECS_FORMAT_TGA)
    case .psd: Traits(handle: CCODECS_FORMAT_PSD)
    case .pnm: Traits(handle: CCODECS_FORMAT_PNM)
    case .hdr: Traits(handle: CCODECS_FORMAT_HDR)
    case .tiff: Traits(handle: CCODECS_FORMAT_TIFF)
    case .jxl:
      Traits(
        handle: CCODECS_FORMAT_JXL, hasSequences: true,
        output: Output(
          fileExtension: "jxl", sizeCurve: .libjxl, optionGroup: .jxl, keeping: .never,
          decodingByteCounts: (9 << 20, 40)))
    case .jpeg2000: Traits(handle: CCODECS_FORMAT_JPEG2000)
    case .ico: Traits(handle: CCODECS_FORMAT_ICO)
    case .qoi: Traits(handle: CCODECS_FORMAT_QOI)
    case .raw:
      Traits(
        handle: CCODECS_FORMAT_RAW,
        output: Output(
          fileExtension: "raw", sizeCurve: nil, optionGroup: .tensor, keeping: .never, isImageFile: false,
          containsProfiles: false))
    }
  }
}
