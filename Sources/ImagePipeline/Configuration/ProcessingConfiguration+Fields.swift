package import Fields
internal import ImageCodecs

/// One entry for each field of a configuration, in the order of the public API.
extension ProcessingConfiguration: FieldRecord {
  package init() { self.init(maxWidth: nil) }

  package static let fields: [Field<ProcessingConfiguration>] =
    placement + delivery + metadataFields + formats

  /// The fields that apply to one format only.
  package static let formats: [Field<ProcessingConfiguration>] = [
    Field(group: "jpeg", \.jpeg), Field(group: "png", \.png), Field(group: "webp", \.webp),
    Field(group: "avif", \.avif), Field(group: "jxl", \.jxl), Field(group: "tensor", \.tensor),
  ]

  /// The fields for the size of the result and the visible part of the image.
  package static let placement: [Field<ProcessingConfiguration>] = [
    Field(
      "max_width", \.maxWidth, .range(1...maxBound), takes: "pixels",
      help: "Set the maximum width of the result. Default: none."),
    Field(
      "max_height", \.maxHeight, .range(1...maxBound), takes: "pixels",
      help: "Set the maximum height of the result. Default: none."),
    Field(
      "scale_factor", \.scaleFactor, .values("a finite number of at least 1") { $0 >= 1 && $0.isFinite },
      takes: "factor", help: "Divide the maximum width and height. Default: 1."),
    Field(
      "zoom", \.zoom, .range(0.1...8), takes: "factor",
      help: "Multiply the minimum and maximum width and height. Default: 1."),
    Field(
      "min_width", \.minWidth, .range(1...maxBound), takes: "pixels",
      help:
        "Set the minimum width of the result, also if that enlarges the image. What then exceeds the maximum height is "
        + "cropped. Default: none."),
    Field(
      "min_height", \.minHeight, .range(1...maxBound), takes: "pixels",
      help:
        "Set the minimum height of the result, also if that enlarges the image. What then exceeds the maximum width is "
        + "cropped. Default: none."),
    Field(
      "resize_mode", \.resizeMode, takes: "mode",
      help: "Choose how the image is brought to the maximum width and height: keep the aspect ratio (fit), cover both "
        + "and crop the rest (fill), or distort (stretch). Default: fit."),
    Field("allow_upscale", \.allowUpscale, help: "Enlarge images that are smaller than the bounds. Default: false."),
    Field(
      "resampling_kernel", \.resamplingKernel, takes: "kernel",
      help:
        "Choose the kernel with which the image is reduced and enlarged, from sharp (lanczos3) to soft (box). Default: "
        + "lanczos3."),
    Field(
      "exact_resize", \.exactResize,
      help: "Resize to the samples that Pillow computes, for models: slower, and not visible. Default: false."),
    Field(
      "resize_in_linear_light", \.resizeInLinearLight,
      help: "Mix pixels by their light when resizing, so that fine patterns keep their brightness: slower. Default: "
        + "false."),
    Field(
      "gravity", \.gravity, takes: "place",
      help:
        "Choose the part that --resize-mode fill keeps, and the place of a padded image. With smart, the part that attracts "
        + "attention; with faces, the faces, which --face-detector finds. Default: center."),
    Field(
      "min_face_margin", \.minFaceMargin, .range(0...2), takes: "fraction",
      help: "Keep this fraction of a face's height around it with --gravity faces, if it fits. Default: 0.5."),
    Field(
      "focus_point", \.focusPoint, .function { (point, field) throws(FieldError) in try point.validate(field) },
      takes: "x,y",
      help: "Keep this place in view with --resize-mode fill, in fractions of width and height. Overrides --gravity."),
    Field(
      "crop", \.crop, .function { (crop, field) throws(FieldError) in try crop.checkNumbers(field) }, takes: "x,y,WxH",
      help: "Take this part of the image, after rotation and flips and before anything else."),
    Field(group: "trim", \.trim),
    Field(
      "regions", \.regions, option: "region", takes: "region",
      help:
        "Hide this part of the image, after rotation and flips and before everything else. Filled with black unless a "
        + "color or an effect is added, as in '10,20,300x200,blur'. With faces, all faces that are found, as in "
        + "'faces,pixelate'. May be repeated."),
    Field(
      "background", \.background, takes: "color",
      help: "Fill transparent parts and padding with this color, as in '#ffffff'. Default: white."),
    Field("pad", \.pad, help: "Fill up to the bounds with the background color. Default: false."),
    Field(
      "extend_aspect_ratio", \.extendAspectRatio, .range(0.1...10), takes: "ratio",
      help:
        "Extend the result to this ratio of width to height with the background color, as in 1.7778 for 16:9. Default: "
        + "none."),
    Field(
      "rotation", \.rotation, .values("0, 90, 180 or 270") { [0, 90, 180, 270].contains($0) }, takes: "degrees",
      help: "Rotate the image clockwise, after its EXIF orientation and before anything else. Default: 0."),
    Field("flip_horizontal", \.flipHorizontal, help: "Swap left and right, after --rotation. Default: false."),
    Field("flip_vertical", \.flipVertical, help: "Swap top and bottom, after --rotation. Default: false."),
  ]

  /// The fields for the format, file size, metadata and filters.
  package static let delivery: [Field<ProcessingConfiguration>] = [
    Field(
      "compression_quality", \.compressionQuality, .fraction, option: "quality", takes: "quality",
      help:
        "Set the compression quality, from 0 (smallest) to 1 (best). Default: that of the preset; without one, 0.8 if an "
        + "option sets a size or a format, and 1 if not."),
    Field(
      "preferred_format", \.preferredFormat, option: "format", takes: "format",
      help: "Set the format of the result; auto chooses the smallest, raw is a tensor. Default: original."),
    Field(
      "accept", \.accept, takes: "formats",
      help: "Choose among these formats with '--format auto': names, or the Accept header of a browser. Default: "
        + "jpeg,png,webp."),
    Field(
      "auto_effort", \.autoEffort, takes: "effort",
      help: "Set the time that '--format auto' may take for a smaller result. Default: medium."),
    Field(
      "max_bytes", \.maxBytes, .values("at least 1") { $0 >= 1 }, takes: "bytes",
      help: "Set the maximum size of the result in bytes; quality is lowered to fit. Default: none."),
    Field(
      "allow_smaller_dimensions", \.allowSmallerDimensions, option: "allow-smaller",
      help: "Make the result smaller than its bounds where --max-bytes requires it. Default: false."),
    Field(
      "allow_lower_frame_rate", \.allowLowerFrameRate,
      help: "Leave out frames of an animation where --max-bytes requires it; the timing stays. Default: false."),
    Field(
      "target_similarity", \.targetSimilarity, .values("between 30 and 100") { (30...100).contains($0) },
      takes: "score",
      help: "Choose the lowest quality whose result reaches this SSIMULACRA 2 score, from 30 (low quality) to 100 (no "
        + "difference). Default: none."),
    Field(
      "never_larger", \.neverLarger,
      help: "Lower the quality of a result that is not enlarged and would have more bytes than its image. "
        + "Default: false; true in presets with a size."),
    Field(
      "filters", \.filters, option: "filter", takes: "filter",
      help: "Apply a filter. Repeat it for a chain; 'image-worker filters' lists the filters."),
    Field(
      "sharpen_reduced", \.sharpenReduced, .range(0...2), takes: "amount",
      help:
        "Sharpen images that are reduced, the more the larger the reduction; 0.5 suits most photographs. Default: 0."),
    Field(
      "facts", \.facts, help: "Report hashes, placeholders, colors and further facts of the image. Default: false."),
    Field(
      "overlays", \.overlays, option: "overlay", takes: "overlay",
      help:
        "Draw an image or a text on the result: a name of --overlays, or a file; or 'text=' and a text. Repeat it for "
        + "several, which are drawn in order."),
    Field(
      "frame_index", \.frameIndex, takes: "index",
      help: "Start with this frame of an animation, or use this page of a TIFF or image of an ICO, the largest first. "
        + "Counted from 0, or from the end if it is negative, as in '--frame-index=-1'. Default: 0."),
    Field(
      "max_frames", \.maxFrames, .range(0...maxFrameBound), takes: "frames",
      help: "Set the maximum number of frames of the result; 0 keeps the whole animation. GIF, WebP and PNG store "
        + "several frames. Default: 1."),
    Field(
      "tolerate_truncation", \.tolerateTruncation,
      help: "Deliver truncated images as far as they go, with a warning. Default: false."),
    Field(
      "always_encode", \.alwaysEncode,
      help: "Encode images anew that could be passed through unchanged. Default: false."),
    Field(
      "tolerate_damage", \.tolerateDamage,
      help: "Deliver damaged images as far as they can be decoded, with a warning. Default: false."),
  ]

  /// The largest width or height that a request can specify, in pixels: the maximum of JPEG.
  package static let maxBound = 65_500

  /// The largest number of frames that a request can specify.
  package static let maxFrameBound = 1_000_000

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
    if colorSpace == .displayP3, !ColorConversion.isSupported {
      throw PipelineError(
        .unservedField, "color_space DISPLAY_P3 needs littlecms, which this build lacks; use SRGB or KEEP",
        field: "color_space")
    }
    try validateBounds()
    try validateFilters()
    if preferredFormat == .raw { try validateTensor() }
    try validateRegions()
    try Overlay.check(overlays ?? [])
  }

  /// Checks the names and parameters of the filters.
  ///
  /// - Throws: `invalidField` with the name of the first invalid field.
  package func validateFilters() throws(PipelineError) { _ = try Filter.resolve(filters ?? []) }
}

extension PipelineError {
  /// Creates `invalidField` from the error of a field.
  package init(_ error: FieldError) {
    self.init(.invalidField, error.message, field: error.field)
  }
}
