internal import ImageCodecs
internal import ImageKernels

/// The steps from a draft to its plan.
extension PlanDraft {
  /// Returns the filters of the result: the sharpening of reduced images, then those of the configuration.
  /// - Throws: The errors of filters, and `limitExceeded` for sides that no stage can have.
  func filters(stored: PixelSize) throws(PipelineError) -> FilterChain {
    let sharpening = try Filter.resolve(configuration.sharpening(reduction: framing.reduction))
    let filters =
      if let levels { FilterChain(levels: levels) } else {
        FilterChain(try sharpening + Filter.resolve(configuration.filters ?? []))
      }
    try Plan.checkSides(stored: stored, framing: framing, filters: filters)
    return filters
  }

  /// Whether rows pass from the decoder to the encoder without becoming RGB.
  func passesRows(of header: ImageHeader, _ filters: FilterChain, _ color: ColorPlan) -> Bool {
    let padsInColor = framing.isPadded && !(isGainMap && header.isGray)
    let filtersInColor = !filters.isEmpty && !(levels != nil && header.isGray)
    let mergesPlanes = configuration.resampling(framing) != .stored && header.colorSpace == .ycbcr
    // Converting gray with a gray profile yields gray, so no other pixel format is needed.
    return !filtersInColor && !padsInColor && drawsOnPlanes(of: header) && !mergesPlanes
      && (color.target == nil || header.isGray)
  }

  /// Whether overlays can be drawn on planes of YCbCr, or there are none.
  private func drawsOnPlanes(of header: ImageHeader) -> Bool {
    let isPlanar = header.colorSpace == .ycbcr && !header.hasAlpha
    return (configuration.overlays ?? []).allSatisfy {
      isPlanar && ($0.blend ?? .over) == .over && !($0.tile ?? false)
    }
  }

  /// Returns the options of the encoder, without metadata.
  /// - `choice`: The formats among which the rows decide; `nil` for `format`.
  func encoder(
    of header: ImageHeader, _ format: ImageFormat, _ choice: FormatChoice?, passesRows: Bool, isDeep: Bool
  ) throws(PipelineError) -> EncoderOptions {
    var options: EncoderOptions
    if let choice {
      options = choice.carrier
    } else {
      options = try Plan.encoder(
        header: header, format: format, outputSize: framing.canvasSize, configuration: configuration,
        colorFormat: passesRows ? nil : header.colorFormat(isDeep: false))
    }
    if isDeep { options.pixelFormat = options.pixelFormat.deep }
    return options
  }

  /// Returns what a request can change about a result that is larger than its image; `nil` for a preview.
  func sizeRemedy(inputFormat: ImageFormat, encoder: EncoderOptions) -> String? {
    isPreview ? nil : NeverLarger.remedy(configuration, inputFormat: inputFormat, encoder: encoder)
  }

  /// Returns the warnings of the draft, and those about fields that the image or its format make void.
  func knownWarnings(
    _ header: ImageHeader, _ colorObstacle: ColorObstacle?, _ depthObstacle: DepthObstacle?
  ) -> [Warning] {
    var known: [Warning] = []
    if (configuration.scaleFactor ?? 1) > 1, configuration.maxWidth == nil, configuration.maxHeight == nil {
      known.append(.ignoredScaleFactor)
    }
    if configuration.readsMetadata, header.hasCredentials { known.append(.removedCredentials) }
    if configuration.targetSimilarity != nil, !SimilarityTarget.isMeasurable(framing.canvasSize) {
      known.append(.ignoredTargetSimilarity(framing.canvasSize))
    }
    if let requested = configuration.colorSpace, let colorObstacle {
      known.append(.changedColorSpace(requested: requested, because: colorObstacle))
    }
    if let depthObstacle { known.append(.reducedBitDepth(because: depthObstacle)) }
    return known + warnings
  }
}

extension ImageHeader {
  /// Whether the image is gray without alpha.
  var isGray: Bool { colorSpace == .gray && !hasAlpha }

  /// The pixel format of rows with all colors.
  func colorFormat(isDeep: Bool) -> PixelFormat {
    let format = hasAlpha ? PixelFormat.rgba8 : .rgb8
    return isDeep ? format.deep : format
  }
}
