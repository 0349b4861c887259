internal import Fields

/// The color space of a result.
package enum ColorSpacePolicy: String, Sendable, Hashable, FieldChoice {
  case srgb
  /// The color space of the image, if the result can have it.
  case keep
  /// The primaries of DCI-P3 with the white and the curve of sRGB.
  case displayP3 = "display_p3"
}
