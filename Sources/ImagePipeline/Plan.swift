internal import ImageCodecs

/// Everything that was decided for one picture before any of it is decoded.
package struct Plan: Sendable, Hashable {
  /// How much larger than the target a reduced decode must at least be on both axes.
  ///
  /// The reduced transform's own low-pass is coarse; from twice the target on, what it does wrong is above the
  /// resampler's cut-off.
  static let smallestResidual = 2.0

  package let input: ImageInfo
  /// As stored, before orientation.
  package let storedSize: PixelSize
  let orientation: Orientation
  /// Of the result, as shown.
  package let outputSize: PixelSize
  /// The picture is decoded at N/8 of its size.
  package let decodeScale: Int
  let encoder: EncoderOptions
  package let background: Color
  /// An upper bound of what the picture will charge to its budget.
  package let workingSetByteCount: UInt64
  package let warnings: [String]

  /// The result's properties, as they are known before it exists.
  package var outputInfo: ImageInfo { ImageInfo(self) }

  /// Bytes of the whole picture at 8 bits a sample, as a decoder would hold it that holds it whole.
  package let decodedByteCount: UInt64

  /// The size of the result before it is turned upright.
  package var storedOutputSize: PixelSize { outputSize.turned(by: orientation) }

  init(
    header: ImageHeader, outputSize: PixelSize, decodeScale: Int, decodeByteCount: UInt64,
    configuration: ProcessingConfiguration
  ) throws(PipelineError) {
    input = ImageInfo(header)
    storedSize = PixelSize(width: header.width, height: header.height)
    orientation = header.orientation
    decodedByteCount = UInt64(storedSize.pixelCount) * UInt64(Self.channelCount(header))
    self.outputSize = outputSize
    self.decodeScale = decodeScale
    background = configuration.background ?? .white
    encoder = try Self.encoder(header: header, outputSize: outputSize, configuration: configuration)
    warnings = Self.warnings(configuration)
    let encoderOptions = encoder
    let encodeByteCount = try withCodecErrors { () throws(CodecError) in try encoderOptions.estimatedByteCount() }
    let stages = Self.stagesByteCount(
      decodedSize: storedSize.scaledUp(eighths: decodeScale), outputSize: outputSize, header: header,
      encoder: encoderOptions)
    workingSetByteCount = decodeByteCount + stages + encodeByteCount
  }

  private static func encoder(
    header: ImageHeader, outputSize: PixelSize, configuration: ProcessingConfiguration
  ) throws(PipelineError) -> EncoderOptions {
    let format: ImageFormat =
      switch configuration.preferredFormat ?? .original {
      case .jpeg: .jpeg
      case .png: .png
      case .webp: .webp
      case .avif: .avif
      case .original: header.format.isEncodable ? header.format : header.hasAlpha ? .png : .jpeg
      }
    guard format.isEncodable else {
      throw PipelineError(
        .unservedField, "\(format.rawValue) results are not built into this worker", field: "preferred_format")
    }
    let quality = configuration.compressionQuality ?? 1
    return EncoderOptions(
      format: format, width: outputSize.width, height: outputSize.height,
      pixelFormat: pixelFormat(of: format, header: header),
      subsampling: quality < 0.9 ? .quarter : .none,
      quality: max(1, Int((quality * 100).rounded())))
  }

  /// What the encoder is given: as near to what the decoder gives as the format allows.
  private static func pixelFormat(of format: ImageFormat, header: ImageHeader) -> PixelFormat {
    switch (format, header.colorSpace) {
    case (.jpeg, .ycbcr) where header.format == .jpeg: .ycc8
    case (.jpeg, .gray) where !header.hasAlpha: .gray8
    case (.png, .gray) where !header.hasAlpha: .gray8
    case (.jpeg, _): .rgb8
    default: header.hasAlpha ? .rgba8 : .rgb8
    }
  }

  private static func channelCount(_ header: ImageHeader) -> Int {
    let colors =
      switch header.colorSpace {
      case .gray: 1
      case .ycbcr, .rgb: 3
      case .cmyk, .ycck: 4
      }
    return colors + (header.hasAlpha ? 1 : 0)
  }

  private static func warnings(_ configuration: ProcessingConfiguration) -> [String] {
    guard (configuration.scaleFactor ?? 1) > 1, configuration.maxWidth == nil, configuration.maxHeight == nil
    else { return [] }
    return ["scale_factor divides the bounds, and there are none"]
  }

  /// An upper bound for the stages between decoder and encoder: filters of every plane, rows between stages, the held
  /// picture of an orientation that needs it, and the output buffer.
  private static func stagesByteCount(
    decodedSize: PixelSize, outputSize: PixelSize, header: ImageHeader, encoder: EncoderOptions
  ) -> UInt64 {
    let stored = outputSize.turned(by: header.orientation)
    let resize = ResizeStage.estimatedByteCount(
      source: decodedSize, destination: stored, hasAlpha: header.hasAlpha, isPlanar: header.colorSpace == .ycbcr)
    let color = ColorStage.estimatedByteCount(width: stored.width)
    let orient = OrientStage.estimatedByteCount(
      size: stored, orientation: header.orientation, pixelFormat: encoder.pixelFormat)
    return UInt64(resize + color + orient + EncodeStage.bufferByteCount)
  }
}

extension PixelSize {
  /// The size of a picture decoded at N/8, rounded up.
  func scaledUp(eighths: Int) -> PixelSize {
    PixelSize(width: (width * eighths + 7) / 8, height: (height * eighths + 7) / 8)
  }
}
