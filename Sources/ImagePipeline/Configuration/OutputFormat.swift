internal import Fields
internal import ImageCodecs

/// The file format of a result.
package enum OutputFormat: String, Sendable, Hashable, FieldChoice {
  /// The input's format where it can be written; else PNG with alpha, JPEG without.
  case original
  case jpeg, png, webp
  /// Where it was built in; else a request for it is refused.
  case avif

  /// `nil` where the input decides.
  var imageFormat: ImageFormat? {
    switch self {
    case .original: nil
    case .jpeg: .jpeg
    case .png: .png
    case .webp: .webp
    case .avif: .avif
    }
  }
}

/// What a result keeps of its image's metadata.
package enum MetadataPolicy: String, Sendable, Hashable, FieldChoice {
  /// Nothing.
  case strip
  /// Artist and copyright.
  case keepCopyright = "keep_copyright"
}
