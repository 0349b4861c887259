internal import CCodecs

/// The layout of samples in the rows of a strip.
package enum PixelFormat: Sendable, Hashable, CaseIterable {
  /// One plane of one channel, 8 bits.
  case gray8
  /// One plane of three interleaved channels, 8 bits.
  case rgb8
  /// One plane of four interleaved channels, 8 bits, alpha not premultiplied.
  case rgba8
  /// Three planes of one channel, 8 bits: Y, Cb and Cr in full-range BT.601, as in JFIF.
  case ycc8
  /// One plane of four interleaved CMYK channels, 8 bits, 255 for no ink.
  case cmyk8
  /// One plane of one channel, 16 bits.
  case gray16
  /// One plane of three interleaved channels, 16 bits.
  case rgb16
  /// One plane of four interleaved channels, 16 bits, alpha not premultiplied.
  case rgba16
  /// One plane of four interleaved channels, 16 bits: color times alpha, and alpha times 255, each 0 to 65025.
  case premultipliedRGBA16

  /// The number of planes.
  package var planeCount: Int { self == .ycc8 ? 3 : 1 }

  /// The number of interleaved samples per pixel of a plane.
  package var channelCount: Int {
    switch self {
    case .gray8, .gray16, .ycc8: 1
    case .rgb8, .rgb16: 3
    case .rgba8, .rgba16, .cmyk8, .premultipliedRGBA16: 4
    }
  }

  /// The number of bytes per pixel of a plane.
  package var pixelByteCount: Int { is16Bit ? 2 * channelCount : channelCount }

  /// Whether pixels have an alpha sample.
  package var hasAlpha: Bool { self == .rgba8 || self == .rgba16 || self == .premultipliedRGBA16 }

  /// Whether pixels have no color.
  package var isGray: Bool { self == .gray8 || self == .gray16 }

  /// Whether samples have 16 bits.
  package var is16Bit: Bool {
    switch self {
    case .gray16, .rgb16, .rgba16, .premultipliedRGBA16: true
    case .gray8, .rgb8, .rgba8, .ycc8, .cmyk8: false
    }
  }

  /// The 16-bit format with the same channels, or this format if there is none.
  package var deep: PixelFormat {
    switch self {
    case .gray8: .gray16
    case .rgb8: .rgb16
    case .rgba8: .rgba16
    case .ycc8, .cmyk8, .gray16, .rgb16, .rgba16, .premultipliedRGBA16: self
    }
  }

  /// The format after conversion to sRGB: 8-bit, and CMYK becomes RGB.
  package var afterProfile: PixelFormat {
    switch self {
    case .cmyk8, .rgb16: .rgb8
    case .gray16: .gray8
    case .rgba16: .rgba8
    case .gray8, .rgb8, .rgba8, .ycc8, .premultipliedRGBA16: self
    }
  }

  init?(_ handle: ccodecs_pixels) {
    switch handle {
    case CCODECS_PIXELS_GRAY8: self = .gray8
    case CCODECS_PIXELS_RGB8: self = .rgb8
    case CCODECS_PIXELS_RGBA8: self = .rgba8
    case CCODECS_PIXELS_YCC8: self = .ycc8
    case CCODECS_PIXELS_CMYK8: self = .cmyk8
    case CCODECS_PIXELS_GRAY16: self = .gray16
    case CCODECS_PIXELS_RGB16: self = .rgb16
    case CCODECS_PIXELS_RGBA16: self = .rgba16
    default: return nil
    }
  }

  /// The C pixel format; `nil` for the format that is only used between pipeline stages.
  var handle: ccodecs_pixels? {
    switch self {
    case .gray8: CCODECS_PIXELS_GRAY8
    case .rgb8: CCODECS_PIXELS_RGB8
    case .rgba8: CCODECS_PIXELS_RGBA8
    case .ycc8: CCODECS_PIXELS_YCC8
    case .cmyk8: CCODECS_PIXELS_CMYK8
    case .gray16: CCODECS_PIXELS_GRAY16
    case .rgb16: CCODECS_PIXELS_RGB16
    case .rgba16: CCODECS_PIXELS_RGBA16
    case .premultipliedRGBA16: nil
    }
  }
}

/// The size of one plane of an image, and its position relative to the image.
///
/// A pixel edge at x in the image is at `x * horizontalScale` in samples of this plane. The scale is 0.5 for a chroma
/// plane of 4:2:0, and N/8 for a luma plane decoded at N/8. Width and height are rounded up; the scales are exact.
package struct PlaneLayout: Sendable, Hashable {
  /// Width in samples.
  package var width: Int
  /// Height in samples.
  package var height: Int
  /// The width of the plane divided by the width of the image.
  package var horizontalScale: Double
  /// The height of the plane divided by the height of the image.
  package var verticalScale: Double

  package init(width: Int, height: Int, horizontalScale: Double = 1, verticalScale: Double = 1) {
    self.width = width
    self.height = height
    self.horizontalScale = horizontalScale
    self.verticalScale = verticalScale
  }
}

/// A pixel format and the layout of each of its planes.
package struct PixelLayout: Sendable, Hashable {
  /// The format of the pixels, which determines the number of planes.
  package var format: PixelFormat
  /// The layout of each plane; there are `format.planeCount`.
  package var planes: [PlaneLayout]

  package init(format: PixelFormat, planes: [PlaneLayout]) {
    self.format = format
    self.planes = planes
  }
}
