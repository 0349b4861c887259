internal import ImageCodecs

/// Everything that was decided for one image before any of it is decoded.
package struct Plan: Sendable, Hashable {
  /// How much larger than the target an image decoded at N/8 must at least be on both axes, by measurement: see
  /// Benchmarks/results/shrink-on-load.md.
  ///
  /// The reduced transform's own low-pass is coarse. At half as much again as the target, what it does wrong is hidden
  /// by the compression of the result, unless the result is of high quality. That one is also of full chroma, of which
  /// the image may have half.
  static func minResidual(quality: Double) -> Double { quality >= 0.9 ? 2.5 : 1.5 }

  /// How many times smaller than its window the result must at least be for edges of blocks not to show, by measurement:
  /// see Benchmarks/results/webp.md.
  private static func minHidingReduction(quality: Double) -> Double { quality >= 0.9 ? 8 : 4 }

  package let input: ImageInfo
  /// As stored, before orientation.
  package let storedSize: PixelSize
  let orientation: Orientation
  /// What is taken of the shown image, and where it goes.
  package let framing: Framing
  /// What is taken of the stored image, in its pixels.
  let storedWindow: Window
  /// Of the result, as shown.
  package var outputSize: PixelSize { framing.canvasSize }
  /// The image is decoded at N/8 of its size.
  package let decodeScale: Int
  let encoder: EncoderOptions
  /// What the result may weigh; `nil` without a limit.
  let byteLimit: ByteLimit?
  package let background: Color
  /// A file that ends early is given as far as it goes.
  let toleratesTruncation: Bool
  /// A damaged file is given as far as it can be decoded.
  let toleratesDamage: Bool
  /// Whether the result is so small that the smoothing of blocks in the decoder would not show.
  let hidesBlocks: Bool
  /// Artist and copyright go into the result, and may be found behind the image's rows.
  let keepsCopyright: Bool
  /// What is done to the result's rows; empty when the image stays as it is.
  package let filters: FilterChain
  /// Whether stages between the resize and the encoder change pixels; such an image is never passed through.
  let changesPixels: Bool
  /// What filters are given: RGB, with alpha when the image has it; without filters, what the encoder takes.
  let filterFormat: PixelFormat
  /// What colours are converted to sRGB in: inks, or what filters are given, as deep as the image is.
  let profileFormat: PixelFormat
  /// An upper bound of what the conversion of the image's colours to sRGB charges; 0 where there is none.
  let conversionByteCount: Int
  /// An upper bound of what the image will charge to its budget: see `Plan+WorkingSet`.
  package internal(set) var workingSetByteCount: UInt64 = 0
  /// How the image gets to its result.
  package internal(set) var passthrough: Passthrough = .decoded
  /// The scale at which an image that is passed on is decoded as well, to find out whether it can be; `nil` where it is
  /// not.
  var trialScale: Int?
  package internal(set) var warnings: [String]

  /// The result's properties, as they are known before it exists.
  package var outputInfo: ImageInfo { ImageInfo(self) }
  /// Of the result's file name, without the dot.
  package var fileExtension: String { encoder.format.traits.output?.fileExtension ?? encoder.format.rawValue }
  /// Whether a library decodes or encodes on threads of its own.
  let usesLibraryThreads: Bool

  /// Bytes of the whole image at 8 bits a sample, as a decoder would hold it that holds it whole.
  package let decodedByteCount: UInt64

  /// The size of the result before it is turned upright and padded.
  package var storedOutputSize: PixelSize { framing.imageSize.turned(by: orientation) }

  /// Samples of the result's chroma planes for each of luma, before it is turned upright.
  var storedChromaScale: (horizontal: Double, vertical: Double) {
    let subsampling = encoder.subsampling
    return orientation.swapsAxes
      ? (subsampling.verticalScale, subsampling.horizontalScale)
      : (subsampling.horizontalScale, subsampling.verticalScale)
  }

  init(
    header: ImageHeader, orientation: Orientation, framing: Framing, decodeScale: Int, decodeByteCount: UInt64,
    configuration: ProcessingConfiguration
  ) throws(PipelineError) {
    input = ImageInfo(header)
    let storedSize = PixelSize(width: header.width, height: header.height)
    self.storedSize = storedSize
    self.orientation = orientation
    self.framing = framing
    storedWindow = framing.window.stored(orientation, shown: storedSize.turned(by: orientation))
    decodedByteCount = UInt64(storedSize.pixelCount) * UInt64(Self.channelCount(header))
    self.decodeScale = decodeScale
    background = configuration.background ?? .white
    toleratesTruncation = configuration.tolerateTruncation ?? false
    toleratesDamage = configuration.tolerateDamage ?? false
    hidesBlocks = framing.reduction >= Self.minHidingReduction(quality: configuration.compressionQuality ?? 1)
    keepsCopyright = configuration.metadata == .keepCopyright
    filters = FilterChain(try Filter.resolve(configuration.filters ?? []))
    try Self.checkSides(stored: storedSize, framing: framing, filters: filters)
    changesPixels = !filters.isEmpty || framing.isPadded
    let colorFormat = header.hasAlpha ? PixelFormat.rgba8 : .rgb8
    // A gray profile makes grays of grays: those need no other format.
    let isGray = header.colorSpace == .gray && !header.hasAlpha
    let isPassed = !changesPixels && (header.profileByteCount == 0 || isGray)
    encoder = try Self.encoder(
      header: header, outputSize: framing.canvasSize, configuration: configuration,
      colorFormat: isPassed ? nil : colorFormat)
    usesLibraryThreads = header.format.traits.usesLibraryThreads || encoder.format.traits.usesLibraryThreads
    warnings = Self.warnings(configuration)
    let encoderOptions = encoder
    filterFormat = isPassed ? encoderOptions.pixelFormat : colorFormat
    profileFormat =
      header.profileByteCount == 0
      ? filterFormat : header.colorSpace.isCMYK ? .cmyk8 : header.is16Bit ? filterFormat.deep : filterFormat
    byteLimit = ByteLimit(configuration, encoder: encoderOptions)
    conversionByteCount = header.conversionByteCount
    workingSetByteCount = decodeByteCount + (try stagesByteCount(header: header))
  }

  /// - `colorFormat`: what filters, conversions of colours and padding need; `nil` when there is none.
  private static func encoder(
    header: ImageHeader, outputSize: PixelSize, configuration: ProcessingConfiguration, colorFormat: PixelFormat?
  ) throws(PipelineError) -> EncoderOptions {
    let format = format(header: header, configuration: configuration)
    guard format.isEncodable else {
      throw PipelineError(
        .unservedField, "this worker was built without the encoder for \(format.rawValue); request another format",
        field: "preferred_format")
    }
    let quality = configuration.compressionQuality ?? 1
    var options = EncoderOptions(
      format: format, width: outputSize.width, height: outputSize.height,
      pixelFormat: colorFormat.map { format.takes($0) ? $0 : .rgb8 } ?? pixelFormat(of: format, header: header),
      subsampling: quality < Double(EncoderOptions.leastQualityOfFullChroma) / 100 ? .quarter : .full,
      quality: max(1, Int((quality * 100).rounded())))
    options.apply(configuration)
    if configuration.metadata == .keepCopyright { options.exif = header.rights }
    return options
  }

  /// What the result is encoded as.
  static func format(header: ImageHeader, configuration: ProcessingConfiguration) -> ImageFormat {
    configuration.preferredFormat?.imageFormat
      ?? (header.format.isEncodable ? header.format : header.hasAlpha ? .png : .jpeg)
  }

  /// What the encoder is given: as near to what the decoder gives as the format allows.
  private static func pixelFormat(of format: ImageFormat, header: ImageHeader) -> PixelFormat {
    let formats: [PixelFormat] =
      switch header.colorSpace {
      case .ycbcr: [.ycc8]
      case .gray: header.hasAlpha ? [] : [.gray8]
      case .rgb, .cmyk, .ycck: []
      }
    return (formats + (header.hasAlpha ? [.rgba8] : [])).first(where: format.takes) ?? .rgb8
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
    return ["scale_factor needs max_width or max_height; set one of them"]
  }
}
