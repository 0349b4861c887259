internal import CCodecs

/// A color space by the code points of ITU-T H.273, as in `nclx` of HEIF and cICP of PNG.
package struct ColorCodes: Sendable, Hashable {
  /// The code point of the chromaticities of red, green, blue and white.
  package var primaries: UInt16
  /// The code point of the curve from samples to light.
  package var transfer: UInt16

  init?(_ handle: ccodecs_color_codes) {
    guard handle.transfer != 0 else { return nil }
    (primaries, transfer) = (handle.primaries, handle.transfer)
  }

  var handle: ccodecs_color_codes { ccodecs_color_codes(primaries: primaries, transfer: transfer) }

  /// Whether each format that stores code points has these primaries: BT.709, BT.2020 and P3.
  package var isCommon: Bool { [1, 9, 11, 12].contains(primaries) }
}
