package import Fields
package import ImageCodecs

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
  /// Whether an image smaller than its bounds is enlarged.
  ///
  /// Default: no.
  package var allowUpscale: Bool?
  /// Which part `fill` keeps, and where padding puts the image.
  ///
  /// Default: `center`.
  package var gravity: Gravity?
  /// The place that `fill` keeps in view; wins over `gravity`.
  ///
  /// Default: none.
  package var focusPoint: Point?
  /// The part of the shown image to take, before anything else.
  ///
  /// Default: all of it.
  package var crop: Crop?
  /// Whether the result has exactly the bounds, with the background around the image.
  ///
  /// Default: no.
  package var pad: Bool?
  /// Clockwise, in degrees: 0, 90, 180 or 270.
  ///
  /// Turning and flipping come first: all else is as if the image had come that way.
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
  /// What shows through transparency where the result has none, and around a padded image.
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
  /// Whether an image is decoded and encoded even where it could be passed on as it is, or turned without loss.
  ///
  /// Default: no.
  package var alwaysEncode: Bool?
  /// Whether a damaged image is delivered as far as it can be decoded, with gray for the rest and a warning; else it is
  /// an error.
  ///
  /// Default: no.
  package var tolerateDamage: Bool?
  /// Applied in this order, after the resize; at most `Filter.maxChainCount`.
  ///
  /// Default: none.
  package var filters: [Filter]?
  /// Whether a result that does not keep `maxBytes` otherwise may become smaller than its bounds.
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

/// One row for each field of a configuration, in the contract's order.
extension ProcessingConfiguration: FieldRecord {
  package init() { self.init(maxWidth: nil) }

  package static let fields: [Field<ProcessingConfiguration>] =
    placement + delivery + [
      Field(group: "jpeg", \.jpeg), Field(group: "png", \.png), Field(group: "webp", \.webp),
    ]

  /// Size, and what is shown of the image.
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
        "Keep this place in view with --resize-mode fill, in fractions of width and height, as in 0.3,0.7. "
          + "Overrides --gravity.")),
    Field(
      "crop", \.crop, .function { (crop, field) throws(FieldError) in try crop.checkNumbers(field) },
      option: OptionText(
        "crop", "x,y,WxH",
        "Take this part of the image before anything else: in pixels, as in 10,20,300x200, or in fractions of width "
          + "and height, as in 0.1,0.1,0.5x0.5.")),
    Field(
      "background", \.background,
      option: OptionText(
        "background", "colour",
        "Fill transparent parts and padding with this colour, as in '#ffffff'. Default: white.")),
    Field(
      "pad", \.pad,
      option: OptionText("pad", "Fill up to the bounds with the background colour. Default: false.")),
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

  /// Format, size of the file, metadata and filters.
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
        "Apply a filter: name, name=intensity, or name=intensity,parameter=value,... Repeat it for a chain; "
          + "'image-worker filters' lists the filters.")),
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

  /// The largest width or height that can be asked for, in pixels: the maximum of JPEG.
  package static let maxBound = 65_500

  /// Checks every set field against its rule, and the fields against each other.
  ///
  /// - Throws: `invalidField` naming the first that breaks a rule, `unservedField` for one that this build cannot serve.
  package func validate() throws(PipelineError) {
    do throws(FieldError) { try validate("") } catch { throw PipelineError(error) }
    try validateCombination()
  }

  /// Checks the fields of a complete configuration against each other.
  ///
  /// Enough for one whose fields were checked when they were read, and much cheaper than `validate()`.
  ///
  /// - Throws: as `validate()`.
  package func validateCombination() throws(PipelineError) {
    if let mode = resizeMode, mode != .fit, maxWidth == nil || maxHeight == nil {
      throw PipelineError(
        .invalidField, "resize_mode \(mode.rawValue.uppercased()) needs both max_width and max_height; set both",
        field: "resize_mode")
    }
    try validateFilters()
  }

  /// Checks the names and the parameters of the filters.
  ///
  /// - Throws: `invalidField` naming the first that is not served.
  package func validateFilters() throws(PipelineError) { _ = try Filter.resolve(filters ?? []) }
}

extension PipelineError {
  package init(_ error: FieldError) {
    self.init(error.isUnserved ? .unservedField : .invalidField, error.message, field: error.field)
  }
}
