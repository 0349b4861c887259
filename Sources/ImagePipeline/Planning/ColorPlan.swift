internal import ImageCodecs

/// A property that keeps the colors of a result from the requested space.
package enum ColorObstacle: String, Sendable, Hashable {
  /// The image is in CMYK, and results are not.
  case cmyk
  /// PQ and HLG need more than 8 bits, and code points.
  case hdr
  /// The profile is for gray, and the result is color.
  case gray
  /// The format of the result contains no profile.
  case format
}

/// The color space of a rendition, and how the image's colors get there.
struct ColorPlan: Sendable, Hashable {
  /// The color space to which colors are converted; `nil` if they remain as they are.
  let target: ColorTarget?
  /// The color space of the rows that are filtered and encoded.
  let gamut: ImageHeader.Gamut
  /// Whether the rows that are encoded have more than 8 bits per sample.
  let isDeep: Bool
  /// The reason why colors become sRGB although the configuration asks for another space; `nil` if they do not, or if
  /// they are sRGB already.
  let obstacle: ColorObstacle?

  /// Chooses the color space that the result can have and that is the closest to the requested one.
  /// - `format`: the format of the result.
  /// - `changesPixels`: whether gray may become color.
  /// - `isDeep`: whether the result has more than 8 bits per sample.
  init(
    _ header: ImageHeader, configuration: ProcessingConfiguration, formats: [ImageFormat], changesPixels: Bool,
    isDeep: Bool
  ) {
    let srgb: ColorTarget? = header.profileByteCount == 0 ? nil : .srgb
    let canContainProfile = formats.allSatisfy { $0.traits.output?.containsProfiles ?? false }
    // The colors of regions are written as those of pads are.
    let changesPixels = changesPixels || configuration.hidesPixels && header.gamut == .hdr
    self.isDeep = isDeep
    switch configuration.colorSpace ?? .srgb {
    case .keep
    where canContainProfile && Self.canKeep(header, formats: formats, changesPixels: changesPixels, isDeep: isDeep):
      (target, gamut) = (nil, header.gamut)
    case .displayP3 where canContainProfile:
      // The neutral colors of sRGB and Display P3 have the same values.
      target = header.gamut == .displayP3 ? nil : header.colorSpace == .gray ? srgb : .displayP3
      gamut = .displayP3
    case .srgb, .keep, .displayP3: (target, gamut) = (srgb, .srgb)
    }
    obstacle = Self.obstacle(
      header, policy: configuration.colorSpace ?? .srgb, isChanged: target == .srgb && gamut == .srgb,
      canContainProfile: canContainProfile)
  }

  /// - `isChanged`: whether colors become sRGB without a profile.
  private static func obstacle(
    _ header: ImageHeader, policy: ColorSpacePolicy, isChanged: Bool, canContainProfile: Bool
  ) -> ColorObstacle? {
    switch policy {
    case .srgb: return nil
    case .keep where header.colorSpace.isCMYK: return .cmyk  // also without a profile
    case .keep where isChanged && header.gamut == .hdr: return .hdr
    case .keep where isChanged && canContainProfile: return .gray
    case .keep, .displayP3: return isChanged && !canContainProfile && !header.gamut.isSRGB ? .format : nil
    }
  }

  /// Whether rows of the result can have the colors of the image.
  private static func canKeep(
    _ header: ImageHeader, formats: [ImageFormat], changesPixels: Bool, isDeep: Bool
  ) -> Bool {
    switch header.gamut {
    case .srgb, .taggedSRGB, .displayP3: true
    // 8 bits are too few for these curves, and their profile for gray cannot convert the colors of pads.
    case .hdr:
      isDeep && header.colorCodes?.isCommon ?? false && !(header.colorSpace == .gray && changesPixels)
    // A profile is for gray, RGB or CMYK, and results are not CMYK.
    case .other:
      switch header.colorSpace {
      case .gray: !header.hasAlpha && !changesPixels && formats.allSatisfy { $0.takes(.gray8) }
      case .ycbcr, .rgb: true
      case .cmyk, .ycck: false
      }
    }
  }

  /// Returns the profile that the result contains; empty for none, which means sRGB or code points.
  /// - `image`: the profile of the image.
  /// - `format`: the input format of the encoder.
  func profile(ofImage image: [UInt8], format: PixelFormat) -> [UInt8] {
    switch gamut {
    case .srgb, .hdr: []
    case .taggedSRGB: format.isGray ? [] : ColorTarget.srgb.compactProfile
    case .displayP3: format.isGray ? [] : ColorTarget.displayP3.compactProfile
    case .other: image
    }
  }

  /// Returns the pixel format in which colors are converted.
  /// - `filterFormat`: The input format of the filters.
  func inputFormat(of header: ImageHeader, _ filterFormat: PixelFormat) -> PixelFormat {
    guard target != nil else { return filterFormat }
    if header.colorSpace.isCMYK && header.profileByteCount > 0 { return .cmyk8 }
    return header.is16Bit ? filterFormat.deep : filterFormat
  }

  /// An upper bound of the bytes that the conversion charges; 0 without a conversion.
  func conversionByteCount(_ header: ImageHeader) -> Int {
    let conversion =
      switch target {
      case nil: 0
      case .srgb: header.conversionByteCount
      case .displayP3: max(header.conversionByteCount, ColorConversion.estimatedByteCountFromSRGB)
      }
    return conversion + (isDeep && conversion > 0 ? ColorConversion.deepByteCount : 0)
  }
}

/// The profile and the metadata of an image, for the plans of its renditions.
struct ImageAttachments {
  /// The profile of the image, if a rendition contains it; otherwise empty.
  let profile: [UInt8]
  /// The metadata of the image, if a rendition contains some of it; otherwise empty.
  let metadata: ImageMetadata
  let budget: ImageBudget

  /// Returns an sRGB color as the samples of a result.
  func samples(of color: Color, _ gamut: ImageHeader.Gamut, _ profile: [UInt8]) -> Color {
    let profile = gamut == .hdr ? self.profile : profile
    let pixel = pixel(of: color, profile, isHDR: gamut == .hdr)
    return Color(red: pixel[0], green: pixel[1], blue: pixel[2])
  }

  /// Returns an sRGB color as an opaque pixel of rows with `profile`: red, green, blue and alpha, or CMYK.
  /// - `isForGray`: whether the profile is for gray, and stands for each of the samples.
  /// - `isHDR`: whether the rows are PQ or HLG, in which white is the reference white of 203 cd/m².
  func pixel(of color: Color, _ profile: [UInt8], isForGray: Bool = false, isHDR: Bool) -> [UInt8] {
    let samples = [color.red, color.green, color.blue].map(isHDR ? ColorProfile.hdrLevel : { $0 })
    var pixels = isForGray ? samples.flatMap { [$0, $0, $0, 255] } : samples + [255]
    if isHDR || color != .white { ColorProfile.convert(&pixels, to: profile, budget: budget) }
    return isForGray ? [pixels[0], pixels[4], pixels[8], 255] : pixels
  }
}

extension ImageHeader.Gamut {
  /// Whether the colors are sRGB, with or without a profile.
  var isSRGB: Bool {
    switch self {
    case .srgb, .taggedSRGB: true
    case .displayP3, .other, .hdr: false
    }
  }

  /// The name in reports.
  var name: String {
    switch self {
    case .srgb, .taggedSRGB: "srgb"
    case .displayP3: "display_p3"
    case .other: "other"
    case .hdr: "hdr"
    }
  }
}
