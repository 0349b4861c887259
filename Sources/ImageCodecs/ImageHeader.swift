internal import CCodecs

/// What a file says of its image before any of it is decoded.
package struct ImageHeader: Sendable, Hashable {
  /// How many luma samples there are for a chroma sample: 2 and 2 for 4:2:0.
  package struct ChromaSampling: Sendable, Hashable {
    /// The horizontal factor.
    package var across: Int
    /// The vertical factor.
    package var down: Int
  }

  /// The colour model of the file's samples.
  package enum ColorSpace: String, Sendable, Hashable {
    case gray, ycbcr, rgb, cmyk, ycck

    /// Whether samples say how much ink there is.
    package var isCMYK: Bool { self == .cmyk || self == .ycck }
  }

  /// Something a caller may want to know of an image that decodes all the same.
  package enum Warning: String, Sendable, Hashable, CaseIterable {
    case brokenEXIF = "the EXIF data is damaged and was ignored"
    case firstFrameOnly = "the file contains several images; only the first was decoded"
    case damaged = "the file is damaged; the decoder repaired or skipped the damaged parts"
    case missingEnd = "the file had no end marker; the result has one"
    case truncated = "the file is truncated; the missing part of the image is gray"
    case unusableProfile = "the colour profile is damaged or does not match the image; its colours were treated as sRGB"
  }

  /// The file's format.
  package var format: ImageFormat
  /// Pixels as stored, before orientation.
  package var width: Int
  /// Pixels as stored, before orientation.
  package var height: Int
  /// What must be done to the rows as they come.
  package var orientation: Orientation
  /// The orientation is the format's order of rows and columns (BMP, TGA), not that of a camera.
  package var isStorageOrder: Bool
  /// Bits per sample as stored.
  package var bitDepth: Int
  /// Rows have 16 bits a sample.
  package var is16Bit: Bool
  /// Whether the image has transparency.
  package var hasAlpha: Bool
  /// Progressive JPEG or interlaced PNG: no row is final before the last scan or pass.
  package var isProgressive: Bool
  /// The decoder holds the whole compressed file before the first row.
  package var buffersInput: Bool
  /// The decoder holds the whole decoded image before the first row.
  package var buffersBitmap: Bool
  /// The colour model of the file's samples.
  package var colorSpace: ColorSpace
  /// Luma samples for each sample of the chroma planes to come; `nil` where the header does not tell.
  package var chromaSampling: ChromaSampling?
  /// Bytes of the profile that its colours are converted from; 0 when they are sRGB, or taken for it.
  package var profileByteCount: Int
  /// An upper bound of the bytes that their conversion charges to the budget; 0 without a profile.
  package var conversionByteCount: Int
  /// Artist and copyright as an EXIF block of nothing else; empty when the image names neither.
  package var rights: [UInt8]
  /// 0 when the bytes read so far do not tell.
  package var frameCount: Int
  /// What is wrong with the file so far.
  package var warnings: [Warning]
  /// The header can be read only where damage is tolerated.
  package var isDamaged: Bool
  /// The first row, as stored, that damage may have changed, where it was met and is tolerated; may sink until the last
  /// row.
  package var damagedRow: Int?
}

extension ImageHeader {
  /// - `profile`: its bytes and those of its conversion.
  init(
    _ handle: ccodecs_header, format: ImageFormat, profile: (byteCount: Int, conversionByteCount: Int), rights: [UInt8]
  ) {
    self.format = format
    (profileByteCount, conversionByteCount) = profile
    chromaSampling =
      handle.chroma_across > 0
      ? ChromaSampling(across: Int(handle.chroma_across), down: Int(handle.chroma_down)) : nil
    self.rights = rights
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
    colorSpace = ColorSpace(handle.color_space)
    frameCount = Int(handle.frame_count)
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

extension ImageHeader.Warning {
  static func all(_ bits: UInt32) -> [ImageHeader.Warning] { allCases.filter { bits & $0.bit != 0 } }

  private var bit: UInt32 {
    switch self {
    case .brokenEXIF: UInt32(CCODECS_WARNING_BAD_EXIF)
    case .firstFrameOnly: UInt32(CCODECS_WARNING_FIRST_FRAME)
    case .damaged: UInt32(CCODECS_WARNING_DAMAGED)
    case .missingEnd: UInt32(CCODECS_WARNING_NO_END)
    case .truncated: UInt32(CCODECS_WARNING_TRUNCATED)
    case .unusableProfile: UInt32(CCODECS_WARNING_BAD_PROFILE)
    }
  }
}
