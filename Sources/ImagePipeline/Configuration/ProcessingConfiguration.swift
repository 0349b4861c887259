package import ImageCodecs

/// How a picture is brought to its bounds.
package enum ResizeMode: String, Sendable, Hashable, CaseIterable {
  /// Both bounds hold, the aspect ratio is kept.
  case fit
  /// Both bounds are reached, the aspect ratio is kept, and what overhangs is cut off.
  case fill
  /// Exactly the bounds; the aspect ratio is not kept.
  case stretch
}

/// What a result keeps of its picture's metadata.
package enum MetadataPolicy: String, Sendable, Hashable, CaseIterable {
  /// Nothing.
  case strip
  /// Artist and copyright.
  case keepCopyright = "keep_copyright"
}

/// What a caller asks for.
///
/// A field left `nil` takes the preset's value, or the default its comment gives.
package struct ProcessingConfiguration: Sendable, Hashable {
  /// Bound of the result's width in pixels, 1 to 65500.
  ///
  /// Default: none.
  package var maxWidth: Int?
  /// Bound of the result's height in pixels, 1 to 65500.
  ///
  /// Default: none.
  package var maxHeight: Int?
  /// 0 to 1, for JPEG and WebP; 1 is the encoder's 100.
  ///
  /// Default: 1.
  package var compressionQuality: Double?
  /// Divides both bounds; at least 1.
  ///
  /// Default: 1.
  package var scaleFactor: Double?
  /// Default: `original`.
  package var preferredFormat: OutputFormat?
  /// Default: `fit`.
  package var resizeMode: ResizeMode?
  /// Whether a picture smaller than its bounds is enlarged.
  ///
  /// Default: no.
  package var allowUpscale: Bool?
  /// Which part `fill` keeps, and where padding puts the picture.
  ///
  /// Default: `center`.
  package var gravity: Gravity?
  /// The place that `fill` keeps in view; wins over `gravity`.
  ///
  /// Default: none.
  package var focusPoint: Point?
  /// The part of the shown picture to take, before anything else.
  ///
  /// Default: all of it.
  package var crop: Crop?
  /// Whether the result has exactly the bounds, with the background around the picture.
  ///
  /// Default: no.
  package var pad: Bool?
  /// Clockwise, in degrees: 0, 90, 180 or 270.
  ///
  /// Turning and flipping come first: all else is as if the picture had come that way.
  ///
  /// Default: 0.
  package var rotation: Int?
  /// Whether left and right change places, after turning.
  ///
  /// Default: no.
  package var flipHorizontal: Bool?
  /// Whether top and bottom change places, after turning.
  ///
  /// Default: no.
  package var flipVertical: Bool?
  /// What shows through transparency where the result has none, and around a padded picture.
  ///
  /// Default: white.
  package var background: Color?
  /// Most bytes of the result.
  ///
  /// Default: no limit.
  package var maxBytes: UInt64?
  /// Default: `strip`.
  package var metadata: MetadataPolicy?
  /// Whether a file that ends after some rows gives these and gray for the rest, with a warning; else it is an error.
  ///
  /// Default: no.
  package var tolerateTruncation: Bool?
  /// Whether a picture is decoded and encoded even where it could be passed on as it is, or turned without loss.
  ///
  /// Default: no.
  package var alwaysEncode: Bool?
  /// Whether a damaged image is delivered as far as it can be decoded, with gray for the rest and a warning; else it is
  /// an error.
  ///
  /// Default: no.
  package var tolerateDamage: Bool?
  /// Applied in this order, after the resize; at most `Filter.largestChainCount`.
  ///
  /// Default: none.
  package var filters: [Filter]?
  /// Whether a result that does not keep `maxBytes` otherwise may become smaller than its bounds.
  ///
  /// Default: no.
  package var allowSmallerDimensions: Bool?
  package var jpeg: JPEGOptions?
  package var png: PNGOptions?
  package var webp: WebPOptions?

  package init(
    maxWidth: Int? = nil, maxHeight: Int? = nil, compressionQuality: Double? = nil, scaleFactor: Double? = nil,
    preferredFormat: OutputFormat? = nil, resizeMode: ResizeMode? = nil, allowUpscale: Bool? = nil,
    gravity: Gravity? = nil, focusPoint: Point? = nil, crop: Crop? = nil, pad: Bool? = nil, rotation: Int? = nil,
    flipHorizontal: Bool? = nil, flipVertical: Bool? = nil, background: Color? = nil, maxBytes: UInt64? = nil,
    metadata: MetadataPolicy? = nil, tolerateTruncation: Bool? = nil, alwaysEncode: Bool? = nil,
    tolerateDamage: Bool? = nil, filters: [Filter]? = nil, allowSmallerDimensions: Bool? = nil,
    jpeg: JPEGOptions? = nil, png: PNGOptions? = nil,
    webp: WebPOptions? = nil
  ) {
    self.maxWidth = maxWidth
    self.maxHeight = maxHeight
    self.compressionQuality = compressionQuality
    self.scaleFactor = scaleFactor
    self.preferredFormat = preferredFormat
    self.resizeMode = resizeMode
    self.allowUpscale = allowUpscale
    self.gravity = gravity
    self.focusPoint = focusPoint
    self.crop = crop
    self.pad = pad
    self.rotation = rotation
    self.flipHorizontal = flipHorizontal
    self.flipVertical = flipVertical
    self.background = background
    self.maxBytes = maxBytes
    self.metadata = metadata
    self.tolerateTruncation = tolerateTruncation
    self.alwaysEncode = alwaysEncode
    self.tolerateDamage = tolerateDamage
    self.filters = filters
    self.allowSmallerDimensions = allowSmallerDimensions
    self.jpeg = jpeg
    self.png = png
    self.webp = webp
  }
}
