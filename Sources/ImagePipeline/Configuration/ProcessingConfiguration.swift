package import Fields
package import ImageCodecs

/// The requested properties of a result.
///
/// A field that is `nil` has the preset's value, or the default stated in its documentation.
package struct ProcessingConfiguration: Sendable, Hashable {
  /// The maximum width of the result in pixels, 1 to 65500.
  ///
  /// Default: none.
  package var maxWidth: Int?
  /// The maximum height of the result in pixels, 1 to 65500.
  ///
  /// Default: none.
  package var maxHeight: Int?
  /// The compression quality of a lossy result, 0 to 1; 1 is the encoder's quality 100.
  ///
  /// Default: 1.
  package var compressionQuality: Double?
  /// The divisor of the maximum width and height, at least 1.
  ///
  /// Default: 1.
  package var scaleFactor: Double?
  /// The file format of the result.
  ///
  /// Default: `original`.
  package var preferredFormat: OutputFormat?
  /// The way in which the image is resized to its bounds.
  ///
  /// Default: `fit`.
  package var resizeMode: ResizeMode?
  /// Whether an image that is smaller than its bounds is enlarged.
  ///
  /// Default: no.
  package var allowUpscale: Bool?
  /// The part of the image that `fill` keeps, and the position of a padded image.
  ///
  /// Default: `center`.
  package var gravity: Gravity?
  /// The position that `fill` keeps in view; overrides `gravity`.
  ///
  /// Default: none.
  package var focusPoint: Point?
  /// The part of the displayed image to use; applied before resizing.
  ///
  /// Default: the whole image.
  package var crop: Crop?
  /// Whether the result is padded to exactly its bounds with the background color.
  ///
  /// Default: no.
  package var pad: Bool?
  /// The clockwise rotation in degrees: 0, 90, 180 or 270.
  ///
  /// Rotation and flips are applied first; all other fields refer to the rotated and flipped image.
  ///
  /// Default: 0.
  package var rotation: Int?
  /// Whether left and right are swapped, after the rotation.
  ///
  /// Default: no.
  package var flipHorizontal: Bool?
  /// Whether top and bottom are swapped, after the rotation.
  ///
  /// Default: no.
  package var flipVertical: Bool?
  /// The color of the padding, and behind transparent pixels if the result has no alpha.
  ///
  /// Default: white.
  package var background: Color?
  /// The maximum size of the result in bytes; quality is lowered to fit.
  ///
  /// Default: no limit.
  package var maxBytes: UInt64?
  /// The metadata that the result keeps.
  ///
  /// Default: `strip`.
  package var metadata: MetadataPolicy?
  /// Whether a truncated image is delivered as far as it goes, with gray for the rest and a warning; otherwise it is an
  /// error.
  ///
  /// Default: no.
  package var tolerateTruncation: Bool?
  /// Whether an image is always decoded and encoded, even if it could be copied, rotated or flipped without loss.
  ///
  /// Default: no.
  package var alwaysEncode: Bool?
  /// Whether a damaged image is delivered as far as it can be decoded, with gray for the rest and a warning; otherwise
  /// it is an error.
  ///
  /// Default: no.
  package var tolerateDamage: Bool?
  /// The filters, applied in this order after the resize; at most `Filter.maxChainCount`.
  ///
  /// Default: none.
  package var filters: [Filter]?
  /// Whether the result may be smaller than its bounds if it cannot fit `maxBytes` otherwise.
  ///
  /// Default: no.
  package var allowSmallerDimensions: Bool?
  /// Options for JPEG results; ignored for other formats.
  package var jpeg: JPEGOptions?
  /// Options for PNG results; ignored for other formats.
  package var png: PNGOptions?
  /// Options for WebP results; ignored for other formats.
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

/// One entry for each field of a configuration, in the order of the public API.
extension ProcessingConfiguration: FieldRecord {
  package init() { self.init(maxWidth: nil) }

  package static let fields: [Field<ProcessingConfiguration>] =
    placement + delivery + [
      Field(group: "jpeg", \.jpeg), Field(group: "png", \.png), Field(group: "webp", \.webp),
    ]

  /// The fields for the size of the result and the visible part of the image.
  private static let placement: [Field<ProcessingConfiguration>] = [
    Field(
      "max_width", \.maxWidth, .range(1...maxBound),
      option: OptionText("max-width", "pixels", "Set the maximum width of the result. Default: none.")),
    Field(
      "max_height", \.maxHeight, .range(1...maxBound),
      option: OptionText("max-height", "pixels", "Set the maximum height of the result. Default: none.")),
    Field(
      "scale_factor", \.scaleFactor, .values("a finite number of at least 1") { $0 >= 1 && $0.isFinite },
      option: OptionText("scale-factor", "factor", "Divide the maximum width and height. Default: 1.")),
    Field(
      "resize_mode", \.resizeMode,
      option: OptionText(
        "resize-mode", "mode",
        "Choose how the image is brought to the maximum width and height: keep the aspect ratio (fit), cover both "
          + "and crop the rest (fill), or distort (stretch). Default: fit.")),
    Field(
      "allow_upscale", \.allowUpscale,
      option: OptionText("allow-upscale", "Enlarge images that are smaller than the bounds. Default: false.")),
    Field(
      "gravity", \.gravity,
      option: OptionText(
        "gravity", "place",
        "Choose the part that --resize-mode fill keeps, and the place of a padded image. Default: center.")),
    Field(
      "focus_point", \.focusPoint, .function { (point, field) throws(FieldError) in try point.validate(field) },
      option: OptionText(
        "focus-point", "x,y",
        "Keep this place in view with --resize-mode fill, in fractions of width and height. Overrides --gravity.")),
    Field(
      "crop", \.crop, .function { (crop, field) throws(FieldError) in try crop.checkNumbers(field) },
      option: OptionText("crop", "x,y,WxH", "Take this part of the image before anything else.")),
    Field(
      "background", \.background,
      option: OptionText(
        "background", "color",
        "Fill transparent parts and padding with this color, as in '#ffffff'. Default: white.")),
    Field(
      "pad", \.pad,
      option: OptionText("pad", "Fill up to the bounds with the background color. Default: false.")),
    Field(
      "rotation", \.rotation, .values("0, 90, 180 or 270") { [0, 90, 180, 270].contains($0) },
      option: OptionText(
        "rotation", "degrees", "Rotate the image clockwise before anything else is done to it. Default: 0.")),
    Field(
      "flip_horizontal", \.flipHorizontal,
      option: OptionText("flip-horizontal", "Swap left and right, after the rotation. Default: false.")),
    Field(
      "flip_vertical", \.flipVertical,
      option: OptionText("flip-vertical", "Swap top and bottom, after the rotation. Default: false.")),
  ]

  /// The fields for the format, file size, metadata and filters.
  private static let delivery: [Field<ProcessingConfiguration>] = [
    Field(
      "compression_quality", \.compressionQuality, .values("between 0 and 1") { (0...1).contains($0) },
      option: OptionText(
        "quality", "quality", "Set the compression quality, from 0 (smallest) to 1 (best). Default: 1.")),
    Field(
      "preferred_format", \.preferredFormat,
      option: OptionText("format", "format", "Set the format of the result. Default: original.")),
    Field(
      "max_bytes", \.maxBytes, .values("at least 1") { $0 >= 1 },
      option: OptionText(
        "max-bytes", "bytes",
        "Set the maximum size of the result in bytes; quality is lowered to fit. Default: none.")),
    Field(
      "allow_smaller_dimensions", \.allowSmallerDimensions,
      option: OptionText(
        "allow-smaller", "Make the result smaller than its bounds where --max-bytes requires it. Default: false.")),
    Field(
      "metadata", \.metadata,
      option: OptionText("metadata", "policy", "Choose the metadata to keep. Default: strip.")),
    Field(
      "filters", \.filters,
      option: OptionText(
        "filter", "filter",
        "Apply a filter. Repeat it for a chain; 'image-worker filters' lists the filters.")),
    Field(
      "tolerate_truncation", \.tolerateTruncation,
      option: OptionText(
        "tolerate-truncation", "Deliver truncated images as far as they go, with a warning. Default: false.")),
    Field(
      "always_encode", \.alwaysEncode,
      option: OptionText(
        "always-encode", "Encode images anew that could be passed through unchanged. Default: false.")),
    Field(
      "tolerate_damage", \.tolerateDamage,
      option: OptionText(
        "tolerate-damage", "Deliver damaged images as far as they can be decoded, with a warning. Default: false.")),
  ]

  /// The largest width or height that a request can specify, in pixels: the maximum of JPEG.
  package static let maxBound = 65_500

  /// Checks every field that is set against its rule, and the fields against each other.
  ///
  /// - Throws: `invalidField` with the name of the first invalid field, `unservedField` for a field that this build
  ///   does not support.
  package func validate() throws(PipelineError) {
    do throws(FieldError) { try validate("") } catch { throw PipelineError(error) }
    try validateCombination()
  }

  /// Checks the fields of a complete configuration against each other.
  ///
  /// This is sufficient for a configuration whose fields were validated when it was read, and much cheaper than
  /// `validate()`.
  ///
  /// - Throws: The errors of `validate()`.
  package func validateCombination() throws(PipelineError) {
    if let mode = resizeMode, mode != .fit, maxWidth == nil || maxHeight == nil {
      throw PipelineError(
        .invalidField, "resize_mode \(mode.rawValue.uppercased()) needs both max_width and max_height; set both",
        field: "resize_mode")
    }
    try validateFilters()
  }

  /// Checks the names and parameters of the filters.
  ///
  /// - Throws: `invalidField` with the name of the first invalid field.
  package func validateFilters() throws(PipelineError) { _ = try Filter.resolve(filters ?? []) }
}

extension PipelineError {
  /// Creates `unservedField` or `invalidField` from the error of a field.
  package init(_ error: FieldError) {
    self.init(error.isUnserved ? .unservedField : .invalidField, error.message, field: error.field)
  }
}
