internal import Fields
internal import ImageCodecs

/// The file format of a result.
package enum OutputFormat: String, Sendable, Hashable, FieldChoice {
  /// The format of the input if it can be encoded; otherwise PNG for an image with alpha and JPEG for one without.
  ///
  /// One frame of a GIF is no GIF.
  case original
  case jpeg, png, webp
  /// AVIF; a request for it is rejected if the encoder was not built in.
  case avif
  case gif
  /// JPEG XL; a request for it is rejected if the encoder was not built in.
  case jxl
  /// The accepted format that makes the smallest result, chosen once the rows are known; see `FormatChoice`.
  case auto
  /// The elements of a tensor, without a header.
  case raw

  /// Other accepted spellings.
  package static let synonyms: [String: OutputFormat] = ["jpg": .jpeg]

  /// The specified format; `nil` if it depends on the input.
  var imageFormat: ImageFormat? {
    switch self {
    case .original, .auto: nil
    case .jpeg: .jpeg
    case .png: .png
    case .webp: .webp
    case .avif: .avif
    case .gif: .gif
    case .jxl: .jxl
    case .raw: .raw
    }
  }
}

/// The color space of a result.
package enum ColorSpacePolicy: String, Sendable, Hashable, FieldChoice {
  case srgb
  /// The color space of the image, if the result can have it.
  case keep
  /// The primaries of DCI-P3 with the white and the curve of sRGB.
  case displayP3 = "display_p3"
}

/// The metadata that a result keeps.
package enum MetadataPolicy: String, Sendable, Hashable, FieldChoice {
  /// Keep no metadata.
  case strip
  /// Keep artist and copyright.
  case keepCopyright = "keep_copyright"
  /// Keep EXIF, XMP and IPTC, without the position and serial numbers.
  case keepAll = "keep_all"
  /// Keep the parts that the configuration names.
  case selected
}
