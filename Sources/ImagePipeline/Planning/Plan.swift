internal import ImageCodecs
internal import ImageKernels

/// All decisions for one rendition of an image, made before decoding starts.
package struct Plan: Sendable, Hashable {
  /// The minimum ratio of an image decoded at N/8 to the target, on both axes.
  ///
  /// The values are measured; see Benchmarks/results/shrink-on-load.md. The low-pass of the reduced transform is
  /// coarse. At 1.5 times the target size, the compression of the result hides its errors, except at high quality. A
  /// result of high quality also has full-resolution chroma, while the chroma of the image may have half the
  /// resolution.
  static func minResidual(quality: Double) -> Double { quality >= 0.9 ? 2.5 : 1.5 }

  /// The minimum reduction from window to result at which block edges are not visible.
  ///
  /// The values are measured; see Benchmarks/results/webp.md.
  private static func minHidingReduction(quality: Double) -> Double { quality >= 0.9 ? 8 : 4 }

  /// The properties of the image.
  package let input: ImageInfo
  /// The size of the stored image in pixels, before orientation.
  package let storedSize: PixelSize
  /// The orientation of the stored image, including the requested rotation and flips.
  let orientation: Orientation
  /// The part of the displayed image to use, and its position in the result.
  package let framing: Framing
  /// The part of the stored image to use, in its pixels.
  let storedWindow: Window
  /// The size of the result in pixels, as displayed.
  package var outputSize: PixelSize { framing.canvasSize }
  /// The scale N at which the image is decoded, as N/8 of its size.
  package let decodeScale: Int
  /// The kernel with which the image is reduced and enlarged.
  let kernel: ResamplingKernel
  /// The arithmetic with which the image is resized.
  let resampling: Resampling
  /// The frames of the image that the result contains.
  let frames: FrameSelection
  let encoder: EncoderOptions
  /// The maximum size of the result in bytes, the similarity that it must reach, and the ways to reach them; `nil` if
  /// the first result is final.
  let byteLimit: ByteLimit?
  /// The rule that the result has no more bytes than the image; `nil` if it does not apply.
  let neverLarger: NeverLarger?
  /// The change of a request that makes a result smaller than its image, for a warning; `nil` without one.
  var sizeRemedy: String?
  /// The color behind transparent pixels, if the result has no alpha, and of the padding.
  package let background: Color
  /// The color space of the result.
  let color: ColorPlan
  /// Whether a truncated image is delivered as far as it goes.
  let toleratesTruncation: Bool
  /// Whether a damaged image is delivered as far as it can be decoded.
  let toleratesDamage: Bool
  /// Whether the reduction hides block edges, so that the decoder may skip its smoothing.
  let hidesBlocks: Bool
  /// Whether the result keeps artist and copyright, which may follow the image data in the file.
  let keepsCopyright: Bool
  /// The areas of the stored image that are hidden before all other stages, in their order.
  let hidden: [HiddenArea]
  /// The filters to apply to the result's rows; empty if there are none.
  package let filters: FilterChain
  /// Whether overlays are drawn on the result.
  let hasOverlays: Bool
  /// The overlays, in the order in which they are drawn.
  private(set) var overlays: [PlannedOverlay] = []
  /// Whether stages between the resize and the encoder change pixels; such an image is never passed through.
  let changesPixels: Bool
  /// The input format of the filters: RGB, with alpha if the image has it; without filters, the input format of the
  /// encoder.
  let filterFormat: PixelFormat
  /// The pixel format in which colors are converted: CMYK, or the input format of the filters at the bit depth
  /// of the image.
  let profileFormat: PixelFormat
  /// The place at which facts are gathered; `nil` if they are not requested.
  let factsPlace: FactsPlace?
  /// An upper bound of the bytes that the color conversion charges; 0 without a conversion.
  let conversionByteCount: Int
  /// An upper bound of the bytes that the image charges to its budget; see `Plan+WorkingSet.swift`.
  package internal(set) var workingSetByteCount: UInt64 = 0
  /// The way in which the result is produced: by decoding, or by passthrough.
  package internal(set) var passthrough: Passthrough = .decoded
  /// The scale, in eighths, at which an image that is passed through is also decoded, to verify that this is possible.
  ///
  /// It is `nil` for an image that is not copied, or whose decoder would exceed the memory limit.
  var trialScale: Int?
  /// The part of the displayed image that was chosen by its pixels; `nil` if none was.
  var crop: PixelRect?
  /// The faces that were found, in pixels of the displayed image, the largest first.
  let faces: [PixelRect]
  /// The gain map that the result contains; `nil` without one.
  var gainMap: GainMapPlan?
  /// Warnings about the configuration, for the report.
  var warnings: [Warning]
  /// Warnings about the file that its header gives cause for; the decoder may add others.
  let headerWarnings: [Warning]

  /// The warnings of the report that are known in advance.
  package var knownWarnings: [ReportedWarning] { (warnings + headerWarnings).map(\.reported) }
  /// The properties of the result, as far as they are known in advance.
  package var outputInfo: ImageInfo { ImageInfo(self) }
  /// The extensions that the result's file name can have, without the dot: several if its rows decide its format.
  package var fileExtensions: [String] {
    (byteLimit?.choice?.candidates.map(\.format) ?? [encoder.format]).map {
      $0.traits.output?.fileExtension ?? $0.rawValue
    }
  }
  /// Whether a library decodes or encodes on threads of its own.
  let usesLibraryThreads: Bool

  /// The size in bytes of the whole decoded image at 8 bits per sample, as a decoder that buffers the whole image needs
  /// it.
  package let decodedByteCount: UInt64

  /// The size of the result in pixels, before it is oriented and padded.
  package var storedOutputSize: PixelSize { framing.imageSize.turned(by: orientation) }

  /// The ratio of chroma samples to luma samples of the result, per axis and before it is oriented.
  var storedChromaScale: (horizontal: Double, vertical: Double) {
    let subsampling = encoder.subsampling
    return orientation.swapsAxes
      ? (subsampling.verticalScale, subsampling.horizontalScale)
      : (subsampling.horizontalScale, subsampling.verticalScale)
  }

  init(
    header: ImageHeader, orientation: Orientation, framing: Framing, decodeScale: Int, decodeByteCount: UInt64,
    configuration: ProcessingConfiguration, frames: FrameSelection, attachments: ImageAttachments,
    spill: SpillDirectory?, faces: [PixelRect]? = nil, keepsGray: Bool = false
  ) throws(PipelineError) {
    self.frames = frames
    input = ImageInfo(header)
    let storedSize = PixelSize(width: header.width, height: header.height)
    self.storedSize = storedSize
    self.orientation = orientation
    self.framing = framing
    storedWindow = framing.window.stored(orientation, shown: storedSize.turned(by: orientation))
    decodedByteCount = UInt64(storedSize.pixelCount) * UInt64(Self.channelCount(header))
    self.decodeScale = decodeScale
    kernel = configuration.resamplingKernel ?? .lanczos3
    resampling = configuration.resampling(framing)
    toleratesTruncation = configuration.tolerateTruncation ?? false
    toleratesDamage = configuration.tolerateDamage ?? false
    hidesBlocks = framing.reduction >= Self.minHidingReduction(quality: configuration.rowQuality)
    keepsCopyright = configuration.metadata == .keepCopyright
    let sharpening = try Filter.resolve(configuration.sharpening(reduction: framing.reduction))
    filters = FilterChain(try sharpening + Filter.resolve(configuration.filters ?? []))
    try Self.checkSides(stored: storedSize, framing: framing, filters: filters)
    hasOverlays = !(configuration.overlays ?? []).isEmpty
    changesPixels = !filters.isEmpty || framing.isPadded || hasOverlays
    if configuration.hidesFaces, frames.isAnimation { throw Self.movingFaces }
    self.faces = faces ?? []
    var colorFormat = header.hasAlpha ? PixelFormat.rgba8 : .rgb8
    // Converting gray with a gray profile yields gray, so no other pixel format is needed.
    let isGray = header.colorSpace == .gray && !header.hasAlpha
    let mergesPlanes = resampling != .stored && header.colorSpace == .ycbcr
    let formats = Self.formats(header: header, configuration: configuration, isAnimation: frames.isAnimation)
    let format = formats[0]
    let depth = DepthPlan(
      header, configuration: configuration, formats: formats, hasFilters: !filters.isEmpty,
      isAnimation: frames.isAnimation)
    color = ColorPlan(
      header, configuration: configuration, format: format, changesPixels: changesPixels, isDeep: depth.isDeep)
    hidden = try Self.hiddenAreas(
      configuration, header: header, orientation, attachments, faces: faces, keepsHDR: color.gamut == .hdr)
    let padsInColor = framing.isPadded && !(keepsGray && isGray)
    let needsColor = !filters.isEmpty || padsInColor || !Self.drawsOnPlanes(configuration.overlays ?? [], header)
    let isPassed = !needsColor && !mergesPlanes && (color.target == nil || isGray)
    let choice = try FormatChoice(
      configuration, header: header, formats: formats, outputSize: framing.canvasSize, colorFormat: colorFormat,
      isGray: isPassed && isGray)
    var options: EncoderOptions
    if let choice {
      options = choice.carrier
    } else {
      options = try Self.encoder(
        header: header, format: format, outputSize: framing.canvasSize, configuration: configuration,
        colorFormat: isPassed ? nil : colorFormat)
    }
    if depth.isDeep { options.pixelFormat = options.pixelFormat.deep }
    let profile = color.profile(ofImage: attachments.profile, format: options.pixelFormat)
    options.metadata = attachments.metadata(
      for: configuration, rights: header.rights, outputSize: framing.canvasSize, isSRGB: color.gamut.isSRGB)
    options.metadata.profile = profile
    options.metadata.colorCodes = color.gamut == .hdr ? header.colorCodes : nil
    background =
      color.gamut == .hdr
      ? attachments.brightened(configuration.background ?? .white)
      : attachments.converted(configuration.background ?? .white, to: profile)
    options.hasFrames = frames.isAnimation
    options.spill = frames.isAnimation ? spill : nil
    let isCompressed = options.format != .raw
    neverLarger =
      !isCompressed
      ? nil
      : NeverLarger(
        configuration, inputFormat: header.format, inputSize: input.size, framing: framing, encoder: options)
    byteLimit = ByteLimit(configuration, encoder: options, neverLarger: neverLarger, choice: choice)
    options.gif.isSpooled = options.hasFrames && byteLimit != nil
    encoder = options
    usesLibraryThreads = header.format.traits.usesLibraryThreads || encoder.format.traits.usesLibraryThreads
    warnings = Self.warnings(
      configuration, outputSize: framing.canvasSize, hasCredentials: header.hasCredentials, color.obstacle,
      depth.obstacle)
    headerWarnings = header.warnings.map { Warning($0, of: header) }
    let encoderOptions = encoder
    if depth.isDeep { colorFormat = colorFormat.deep }
    filterFormat = isPassed ? encoderOptions.pixelFormat : colorFormat
    factsPlace = FactsPlace(configuration, header: header, filterFormat: filterFormat)
    profileFormat =
      color.target == nil
      ? filterFormat
      : header.colorSpace.isCMYK && header.profileByteCount > 0
        ? .cmyk8 : header.is16Bit ? filterFormat.deep : filterFormat
    sizeRemedy =
      neverLarger == nil && isCompressed
      ? NeverLarger.remedy(configuration, inputFormat: header.format, encoder: encoderOptions) : nil
    conversionByteCount = color.conversionByteCount(header)
    workingSetByteCount = decodeByteCount + (try stagesByteCount(header: header))
  }

  private static let movingFaces = PipelineError(
    .unservedField,
    "a region has the shape FACES, but the result has several frames, and faces are found in the first one only; leave "
      + "max_frames unset, or set it to 1", field: "regions")

  /// Whether overlays can be drawn on planes of YCbCr, or there are none.
  private static func drawsOnPlanes(_ overlays: [Overlay], _ header: ImageHeader) -> Bool {
    let isPlanar = header.colorSpace == .ycbcr && !header.hasAlpha
    return overlays.allSatisfy { isPlanar && ($0.blend ?? .over) == .over && !($0.tile ?? false) }
  }

  /// Adds the overlays, and the memory that they need.
  ///
  /// They are decoded one after the other, after the image's decoder was created and before anything else.
  mutating func setOverlays(_ overlays: [PlannedOverlay], decodeByteCount: UInt64) {
    self.overlays = overlays
    let decoding = overlays.map(\.decodeByteCount).max() ?? 0
    workingSetByteCount =
      max(workingSetByteCount, decodeByteCount + decoding) + overlays.reduce(0) { $0 + UInt64($1.byteCount) }
  }

  /// Chooses the options of the encoder.
  /// - `colorFormat`: The pixel format that filters, color conversion and padding need; `nil` if there are none.
  static func encoder(
    header: ImageHeader, format: ImageFormat, outputSize: PixelSize, configuration: ProcessingConfiguration,
    colorFormat: PixelFormat?
  ) throws(PipelineError) -> EncoderOptions {
    guard format.isEncodable else {
      throw PipelineError(
        .unservedField, "this worker was built without the encoder for \(format.rawValue); request another format",
        field: "preferred_format")
    }
    let quality = configuration.compressionQuality ?? 1
    var options = EncoderOptions(
      format: format, width: outputSize.width, height: outputSize.height,
      pixelFormat: colorFormat.map { format.takes($0) ? $0 : .rgb8 } ?? pixelFormat(of: format, header: header),
      subsampling: quality < Double(EncoderOptions.minQualityOfFullChroma) / 100 ? .quarter : .full,
      quality: max(1, Int((quality * 100).rounded())))
    options.apply(configuration)
    return try options.aimed(configuration)
  }

  /// Returns the file format of the result; the first one if its rows decide.
  /// - `isAnimation`: Whether the result may have several frames.
  static func format(
    header: ImageHeader, configuration: ProcessingConfiguration, isAnimation: Bool = false
  ) -> ImageFormat {
    formats(header: header, configuration: configuration, isAnimation: isAnimation)[0]
  }

  /// Returns the file formats that the result can have: one unless its rows decide.
  private static func formats(
    header: ImageHeader, configuration: ProcessingConfiguration, isAnimation: Bool
  ) -> [ImageFormat] {
    if configuration.preferredFormat == .auto {
      return FormatChoice.formats(header: header, configuration: configuration, isAnimation: isAnimation)
    }
    let isKept =
      switch header.format.traits.output?.keeping {
      case .all: header.format.isEncodable
      case .animations: header.format.isEncodable && isAnimation
      case .never, nil: false
      }
    return [configuration.preferredFormat?.imageFormat ?? (isKept ? header.format : header.hasAlpha ? .png : .jpeg)]
  }

  /// Returns the input format of the encoder: the closest to the decoder's output that `format` supports.
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

  private static func warnings(
    _ configuration: ProcessingConfiguration, outputSize: PixelSize, hasCredentials: Bool, _ obstacle: ColorObstacle?,
    _ depthObstacle: DepthObstacle?
  ) -> [Warning] {
    var warnings: [Warning] = []
    if (configuration.scaleFactor ?? 1) > 1, configuration.maxWidth == nil, configuration.maxHeight == nil {
      warnings.append(.ignoredScaleFactor)
    }
    if configuration.readsMetadata, hasCredentials { warnings.append(.removedCredentials) }
    if configuration.targetSimilarity != nil, !SimilarityTarget.isMeasurable(outputSize) {
      warnings.append(.ignoredTargetSimilarity(outputSize))
    }
    if let requested = configuration.colorSpace, let obstacle {
      warnings.append(.changedColorSpace(requested: requested, because: obstacle))
    }
    if let depthObstacle { warnings.append(.reducedBitDepth(because: depthObstacle)) }
    return warnings
  }
}
