internal import ImageCodecs
internal import LibC

/// A gain map of Apple, which brightens by 1 + (headroom - 1) * linear(level), as ISO 21496-1 describes it: by
/// headroom ^ level.
///
/// Source: Apple, "Applying Apple HDR effect to your photos"
/// (https://developer.apple.com/documentation/appkit/applying-apple-hdr-effect-to-your-photos); ITU-R BT.709, 1.2, for
/// the transfer function; ISO 21496-1, 5.2 and annex C.
struct AppleGainMap: Sendable, Hashable {
  /// The maximum gain, as a power of two in steps of 1/10000.
  let gain: Int

  private static let stepsPerStop = 10_000
  /// The gains that displays can show; a map of less is none.
  private static let gains = 100...8 * stepsPerStop

  /// Creates a map; `nil` if neither states a headroom.
  /// - Parameters:
  ///   - xmp: The XMP packet of the map.
  ///   - exif: The EXIF block of its image.
  init?(xmp: [UInt8], exif: [UInt8]) {
    guard let stops = Self.stops(xmp: xmp) ?? AppleMakerNote(exif: exif).map(Self.stops) else { return nil }
    let gain = (stops * Double(Self.stepsPerStop)).rounded()
    guard Double(Self.gains.lowerBound)...Double(Self.gains.upperBound) ~= gain else { return nil }
    self.gain = Int(gain)
  }

  private static func stops(xmp: [UInt8]) -> Double? {
    XMPNumber.find("HDRGainMapHeadroom", in: xmp).flatMap { $0 > 0 ? log2($0) : nil }
  }

  private static func stops(_ note: AppleMakerNote) -> Double {
    let stops =
      note.headroom < 1
      ? note.gain <= 0.01 ? -20 * note.gain + 1.8 : -0.101 * note.gain + 1.601
      : note.gain <= 0.01 ? -70 * note.gain + 3 : -0.303 * note.gain + 2.303
    return max(0, stops)
  }

  /// The maximum gain as a power of two.
  private var stops: Double { Double(gain) / Double(Self.stepsPerStop) }

  /// How much brighter than the image its brightest parts become.
  var headroom: Double { exp2(stops) }

  /// The level of the new map for each level of the old one.
  var levels: [UInt8] {
    (0...255).map { level in
      let signal = Double(level) / 255
      let linear = signal < 0.081 ? signal / 4.5 : pow((signal + 0.099) / 1.099, 1 / 0.45)
      return UInt8((255 * log2(1 + (headroom - 1) * linear) / stops).rounded())
    }
  }

  /// The metadata of ISO 21496-1, from the versions on: one channel, in the colors of the image.
  var metadata: [UInt8] {
    let (none, whole) = ((0, 1), (1, 1))
    let maximum = (gain, Self.stepsPerStop)
    // The headroom of the image and of the brighter one, the minimum and the maximum gain, gamma, and two offsets.
    let fractions = [none, maximum, none, maximum, whole, none, none]
    let numbers = fractions.flatMap { [$0.0, $0.1] }.flatMap { number in
      (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }
    return [0, 0, 0, 0, 0x40] + numbers
  }

  /// The same as properties of Adobe and Ultra HDR.
  var properties: String {
    let fraction = String(Self.stepsPerStop + gain % Self.stepsPerStop).dropFirst()
    let maximum = "\(gain / Self.stepsPerStop).\(fraction)"
    return "hdrgm:GainMapMin=\"0\" hdrgm:GainMapMax=\"\(maximum)\" hdrgm:Gamma=\"1\" hdrgm:OffsetSDR=\"0\" "
      + "hdrgm:OffsetHDR=\"0\" hdrgm:HDRCapacityMin=\"0\" hdrgm:HDRCapacityMax=\"\(maximum)\" "
      + "hdrgm:BaseRenditionIsHDR=\"False\""
  }
}
