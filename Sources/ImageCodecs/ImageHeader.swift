internal import CCodecs

/// The properties of an image that are known before any of it is decoded.
package struct ImageHeader: Sendable, Hashable {
  /// The number of luma samples per chroma sample on each axis: 2 and 2 for 4:2:0.
  package struct ChromaSampling: Sendable, Hashable {
    /// The horizontal factor.
    package var across: Int
    /// The vertical factor.
    package var down: Int
  }

  /// The color model of the file's samples.
  package enum ColorSpace: String, Sendable, Hashable {
    case gray, ycbcr, rgb, cmyk, ycck

    /// Whether the samples are amounts of ink.
    package var isCMYK: Bool { self == .cmyk || self == .ycck }
  }

  /// The colors that the samples define.
  package enum Gamut: Sendable, Hashable {
    /// sRGB, as the image does not specify a color space, or an unusable one.
    case srgb
    /// sRGB, as a profile specifies.
    case taggedSRGB
    case displayP3
    /// The colors of any other profile.
    case other
    /// PQ or HLG, for which the profile contains a tone curve.
    case hdr
  }

  /// A problem with an image that does not prevent decoding.
  package enum Warning: Sendable, Hashable, CaseIterable {
    case brokenEXIF, firstFrameOnly, damaged, damagedWithoutLoss, missingEnd, lateOrientation, truncated
    case unusableProfile
  }

  /// The file's format.
  package var format: ImageFormat
  /// The width in pixels as stored, before orientation.
  package var width: Int
  /// The height in pixels as stored, before orientation.
  package var height: Int
  /// The orientation to apply to the decoded rows.
  package var orientation: Orientation
  /// Whether the orientation is the format's own row and column order (BMP, TGA), not that of a camera.
  package var isStorageOrder: Bool
  /// The number of bits per sample in the file.
  package var bitDepth: Int
  /// Whether decoded rows have 16 bits per sample.
  package var is16Bit: Bool
  /// Whether the image has transparency.
  package var hasAlpha: Bool
  /// Whether the file is a progressive JPEG or an interlaced PNG: no row is final before the last scan or pass.
  package var isProgressive: Bool
  /// Whether the decoder buffers the whole compressed file before it returns the first row.
  package var buffersInput: Bool
  /// Whether the decoder buffers the whole decoded image before it returns the first row.
  package var buffersBitmap: Bool
  /// Whether the decoder buffers a part of the file only, unless `Decoder.bufferInput` makes it buffer the whole file.
  package var canBufferInput: Bool
  /// Whether nothing is decoded before the whole file has arrived, and then the whole image at once.
  package var isDecodedWhole: Bool { buffersInput && buffersBitmap }
  /// The color model of the file's samples.
  package var colorSpace: ColorSpace
  /// The number of luma samples per sample of the decoded chroma planes; `nil` if the header does not specify it.
  package var chromaSampling: ChromaSampling?
  /// The size in bytes of the color profile to convert from; 0 if the image is sRGB or treated as sRGB.
  package var profileByteCount: Int
  /// An upper bound of the bytes that the color conversion charges to the budget; 0 without a profile.
  package var conversionByteCount: Int
  /// The color space of the samples.
  package var gamut: Gamut
  /// The code points of PQ or HLG; `nil` for other colors.
  package var colorCodes: ColorCodes?
  /// An EXIF block that contains only the artist and copyright; empty if the image specifies neither.
  package var copyright: [UInt8]
  /// Whether the file has content credentials (C2PA); only known if the metadata of the image is kept.
  package var hasCredentials: Bool
  /// The number of frames; 0 if it is not known yet.
  package var frameCount: Int
  /// How often an animation is played, as far as it is known; 0 for ever.
  package var playCount: Int
  /// Whether frames other than the first can be decoded.
  package var hasFrames: Bool
  /// Whether any one of the pages or images of the file, which `frameCount` counts, can be decoded.
  package var hasPages: Bool
  /// Whether the image that is decoded without a selection is none of the frames (APNG).
  package var hasDefaultImage: Bool
  /// The warnings so far.
  package var warnings: [Warning]
  /// Whether the header is damaged and can only be used if damage is tolerated.
  package var isDamaged: Bool
  /// The first stored row that tolerated damage may affect; `nil` if there is no such damage.
  ///
  /// The value may decrease until the last row is decoded.
  package var damagedRow: Int?
}

extension ImageHeader {
  /// Creates a header from its C representation.
  /// - `profile`: the size of the profile, and an upper bound of the memory for the conversion, in bytes.
  init(
    _ handle: ccodecs_header, format: ImageFormat, profile: (byteCount: Int, conversionByteCount: Int),
    copyright: [UInt8]
  ) {
    self.format = format
    (profileByteCount, conversionByteCount) = profile
    chromaSampling =
      handle.chroma_across > 0
      ? ChromaSampling(across: Int(handle.chroma_across), down: Int(handle.chroma_down)) : nil
    self.copyright = copyright
    gamut = Gamut(handle.gamut)
    colorCodes = gamut == .hdr ? ColorCodes(handle.color_codes) : nil
    hasCredentials = handle.has_credentials
    width = Int(handle.width)
    height = Int(handle.height)
    orientation = Orientation(rawValue: Int(handle.orientation)) ?? .up
    isStorageOrder = handle.is_storage_order
    bitDepth = Int(handle.bit_depth)
    is16Bit = handle.is_16bit
    hasAlpha = handle.has_alpha
    isProgressive = handle.is_progressive
    buffersInput = handle.buffers_input
    buffersBitmap = handle.buffers_bitmap
    canBufferInput = handle.can_buffer_input
    colorSpace = ColorSpace(handle.color_space)
    frameCount = Int(handle.frame_count)
    playCount = Int(handle.play_count)
    hasFrames = handle.has_frames
    hasPages = handle.has_pages
    hasDefaultImage = handle.has_default_image
    warnings = Warning.all(handle.warnings)
    isDamaged = handle.is_damaged
    damagedRow = handle.warnings & UInt32(CCODECS_WARNING_TOLERATED) != 0 ? Int(handle.damaged_row) : nil
  }
}

extension ImageHeader.ColorSpace {
  fileprivate init(_ handle: ccodecs_color_space) {
    switch handle {
    case CCODECS_COLOR_GRAY: self = .gray
    case CCODECS_COLOR_YCBCR: self = .ycbcr
    case CCODECS_COLOR_CMYK: self = .cmyk
    case CCODECS_COLOR_YCCK: self = .ycck
    default: self = .rgb
    }
  }
}

extension ImageHeader.Gamut {
  fileprivate init(_ handle: ccodecs_gamut) {
    switch handle {
    case CCODECS_GAMUT_TAGGED_SRGB: self = .taggedSRGB
    case CCODECS_GAMUT_DISPLAY_P3: self = .displayP3
    case CCODECS_GAMUT_OTHER: self = .other
    case CCODECS_GAMUT_HDR: self = .hdr
    default: self = .srgb
    }
  }
}

extension ImageHeader.Warning {
  static func all(_ bits: UInt32) -> [ImageHeader.Warning] { allCases.filter { bits & $0.bit != 0 } }

  private var bit: UInt32 {
    switch self {
    case .brokenEXIF: UInt32(CCODECS_WARNING_BAD_EXIF)
    case .firstFrameOnly: UInt32(CCODECS_WARNING_FIRST_FRAME)
    case .damaged: UInt32(CCODECS_WARNING_DAMAGED)
    case .missingEnd: UInt32(CCODECS_WARNING_NO_END)
    case .damagedWithoutLoss: UInt32(CCODECS_WARNING_NO_LOSS)
    case .lateOrientation: UInt32(CCODECS_WARNING_LATE_EXIF)
    case .truncated: UInt32(CCODECS_WARNING_TRUNCATED)
    case .unusableProfile: UInt32(CCODECS_WARNING_BAD_PROFILE)
    }
  }
}
