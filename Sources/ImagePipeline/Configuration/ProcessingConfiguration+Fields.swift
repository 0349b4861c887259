package import Fields
internal import ImageCodecs

extension OutputFormat: FieldChoice {}
extension ResizeMode: FieldChoice {}
extension MetadataPolicy: FieldChoice {}

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
      "max_width", \.maxWidth, .range(1...largestBound),
      option: OptionText("max-width", "pixels", "Set the maximum width of the result. Default: none.")),
    Field(
      "max_height", \.maxHeight, .range(1...largestBound),
      option: OptionText("max-height", "pixels", "Set the maximum height of the result. Default: none.")),
    Field(
      "scale_factor", \.scaleFactor, .values("a finite number of at least 1") { $0 >= 1 && $0.isFinite },
      option: OptionText("scale-factor", "factor", "Divide the maximum width and height. Default: 1.")),
    Field(
      "resize_mode", \.resizeMode,
      option: OptionText(
        "resize-mode", "mode",
        "Choose how the image is brought to the maximum width and height: keep the aspect ratio (fit), also cover both "
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
  package static let largestBound = 65_500

  /// Checks every set field against its rule.
  /// - Parameter partial: the configuration only overrides another, which may set what this one lacks.
  /// - Throws: `invalidField` naming the first that breaks it, `unservedField` for one that this build cannot serve.
  package func validate(partial: Bool = false) throws(PipelineError) {
    do throws(FieldError) { try validate("") } catch { throw PipelineError(error) }
    if !partial, let mode = resizeMode, mode != .fit, maxWidth == nil || maxHeight == nil {
      throw PipelineError(
        .invalidField, "resize_mode \(mode.rawValue.uppercased()) needs both max_width and max_height",
        field: "resize_mode")
    }
    _ = try Filter.resolve(filters ?? [])
  }
}

extension PipelineError {
  package init(_ error: FieldError) {
    self.init(error.isUnserved ? .unservedField : .invalidField, error.message, field: error.field)
  }
}
