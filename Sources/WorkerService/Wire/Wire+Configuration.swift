internal import GRPCProtobuf
internal import ImagePipeline
internal import WorkerProtocol

extension ProcessingConfiguration {
  /// The configuration of a request.
  /// - Throws: `invalidField` for a value that is out of range or has no meaning, `unservedField` for one that this
  ///   build can't serve.
  init(_ wire: Imageworker_V1_ProcessingConfiguration) throws(PipelineError) {
    self.init(
      maxWidth: wire.hasMaxWidth ? Int(wire.maxWidth) : nil,
      maxHeight: wire.hasMaxHeight ? Int(wire.maxHeight) : nil,
      compressionQuality: wire.hasCompressionQuality ? wire.compressionQuality : nil,
      scaleFactor: wire.hasScaleFactor ? wire.scaleFactor : nil,
      preferredFormat: wire.hasPreferredFormat ? try OutputFormat.read(wire.preferredFormat) : nil,
      resizeMode: wire.hasResizeMode ? try ResizeMode.read(wire.resizeMode) : nil,
      allowUpscale: wire.hasAllowUpscale ? wire.allowUpscale : nil,
      gravity: wire.hasGravity ? try Gravity.read(wire.gravity) : nil,
      focusPoint: wire.hasFocusPoint ? Point(x: wire.focusPoint.x, y: wire.focusPoint.y) : nil,
      crop: wire.hasCrop ? try Crop(wire.crop) : nil,
      pad: wire.hasPad ? wire.pad : nil,
      rotation: wire.hasRotation ? Int(wire.rotation) : nil,
      flipHorizontal: wire.hasFlipHorizontal ? wire.flipHorizontal : nil,
      flipVertical: wire.hasFlipVertical ? wire.flipVertical : nil,
      background: wire.hasBackground ? try Color(wire.background) : nil,
      maxBytes: wire.hasMaxBytes ? wire.maxBytes : nil,
      metadata: wire.hasMetadata ? try MetadataPolicy.read(wire.metadata) : nil,
      tolerateTruncation: wire.hasTolerateTruncation ? wire.tolerateTruncation : nil,
      alwaysEncode: wire.hasAlwaysEncode ? wire.alwaysEncode : nil,
      filters: wire.filters.isEmpty ? nil : wire.filters.map(Filter.init),
      allowSmallerDimensions: wire.hasAllowSmallerDimensions ? wire.allowSmallerDimensions : nil,
      jpeg: wire.hasJpeg ? try JPEGOptions(wire.jpeg) : nil,
      png: wire.hasPng ? try PNGOptions(wire.png) : nil,
      webp: wire.hasWebp ? WebPOptions(wire.webp) : nil)
    // Checked before the preset is applied, so that a value out of range is named even where another would hide it.
    try validate(partial: true)
  }
}

extension OutputFormat {
  fileprivate static func read(_ wire: Imageworker_V1_OutputFormat) throws(PipelineError) -> OutputFormat? {
    switch wire {
    case .unspecified: nil
    case .original: .original
    case .jpeg: .jpeg
    case .png: .png
    case .webp: .webp
    case .avif: .avif
    case .UNRECOGNIZED(let value): throw PipelineError(unknownValue: value, field: "preferred_format")
    }
  }

  fileprivate var wire: Imageworker_V1_OutputFormat {
    switch self {
    case .original: .original
    case .jpeg: .jpeg
    case .png: .png
    case .webp: .webp
    case .avif: .avif
    }
  }
}

extension ResizeMode {
  fileprivate static func read(_ wire: Imageworker_V1_ResizeMode) throws(PipelineError) -> ResizeMode? {
    switch wire {
    case .unspecified: nil
    case .fit: .fit
    case .stretch: .stretch
    case .fill: .fill
    case .UNRECOGNIZED(let value): throw PipelineError(unknownValue: value, field: "resize_mode")
    }
  }

  fileprivate var wire: Imageworker_V1_ResizeMode {
    switch self {
    case .fit: .fit
    case .fill: .fill
    case .stretch: .stretch
    }
  }
}

extension MetadataPolicy {
  fileprivate static func read(_ wire: Imageworker_V1_MetadataPolicy) throws(PipelineError) -> MetadataPolicy? {
    switch wire {
    case .unspecified: nil
    case .strip: .strip
    case .keepCopyright: .keepCopyright
    case .UNRECOGNIZED(let value): throw PipelineError(unknownValue: value, field: "metadata")
    }
  }

  fileprivate var wire: Imageworker_V1_MetadataPolicy {
    switch self {
    case .strip: .strip
    case .keepCopyright: .keepCopyright
    }
  }
}

extension Color {
  fileprivate init(_ wire: Imageworker_V1_Color) throws(PipelineError) {
    let channels = [("red", wire.red), ("green", wire.green), ("blue", wire.blue)]
    if let (name, value) = channels.first(where: { $0.1 > 255 }) {
      throw PipelineError(
        .invalidField, "background.\(name) is \(value); it must be between 0 and 255", field: "background.\(name)")
    }
    self.init(red: UInt8(wire.red), green: UInt8(wire.green), blue: UInt8(wire.blue))
  }
}

extension Filter {
  fileprivate init(_ wire: Imageworker_V1_Filter) {
    self.init(name: wire.name, intensity: wire.intensity, parameters: wire.parameters)
  }
}

extension Imageworker_V1_Filter {
  fileprivate init(_ filter: Filter) {
    self.init()
    name = filter.name
    intensity = filter.intensity
    parameters = filter.parameters
  }
}

extension PipelineError {
  init(unknownValue value: Int, field: String) {
    self.init(.invalidField, "\(field) has no value \(value)", field: field)
  }
}

extension Imageworker_V1_Preset {
  init(_ preset: Preset) {
    self.init()
    name = preset.name
    description_p = preset.description
    configuration = Imageworker_V1_ProcessingConfiguration(preset.configuration)
  }
}

extension Imageworker_V1_ProcessingConfiguration {
  init(_ configuration: ProcessingConfiguration) {
    self.init()
    if let width = configuration.maxWidth { maxWidth = UInt32(width) }
    if let height = configuration.maxHeight { maxHeight = UInt32(height) }
    if let quality = configuration.compressionQuality { compressionQuality = quality }
    if let factor = configuration.scaleFactor { scaleFactor = factor }
    if let format = configuration.preferredFormat { preferredFormat = format.wire }
    if let mode = configuration.resizeMode { resizeMode = mode.wire }
    if let upscale = configuration.allowUpscale { allowUpscale = upscale }
    if let gravity = configuration.gravity { self.gravity = gravity.wire }
    if let point = configuration.focusPoint { (focusPoint.x, focusPoint.y) = (point.x, point.y) }
    if let crop = configuration.crop { self.crop = Imageworker_V1_Rect(crop) }
    if let pad = configuration.pad { self.pad = pad }
    if let rotation = configuration.rotation { self.rotation = UInt32(rotation) }
    if let flip = configuration.flipHorizontal { flipHorizontal = flip }
    if let flip = configuration.flipVertical { flipVertical = flip }
    if let bytes = configuration.maxBytes { maxBytes = bytes }
    if let policy = configuration.metadata { metadata = policy.wire }
    if let isTolerant = configuration.tolerateTruncation { tolerateTruncation = isTolerant }
    if let isForced = configuration.alwaysEncode { alwaysEncode = isForced }
    filters = (configuration.filters ?? []).map(Imageworker_V1_Filter.init)
    if let isAllowed = configuration.allowSmallerDimensions { allowSmallerDimensions = isAllowed }
    if let options = configuration.jpeg { jpeg = Imageworker_V1_JPEGOptions(options) }
    if let options = configuration.png { png = Imageworker_V1_PNGOptions(options) }
    if let options = configuration.webp { webp = Imageworker_V1_WebPOptions(options) }
    if let color = configuration.background {
      background.red = UInt32(color.red)
      background.green = UInt32(color.green)
      background.blue = UInt32(color.blue)
    }
  }
}
