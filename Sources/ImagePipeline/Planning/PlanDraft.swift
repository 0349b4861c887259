internal import ImageCodecs
internal import ImageKernels
internal import LibC

/// The decisions for one rendition that do not depend on the common decode scale.
struct PlanDraft {
  private(set) var configuration: ProcessingConfiguration
  let orientation: Orientation
  let framing: Framing
  /// Whether the result is a preview, for which speed matters more than quality.
  var isPreview = false
  /// Whether the image is a gain map, of which gray stays gray also where it is padded.
  var isGainMap = false
  /// The new value of each level of a gain map; `nil` if they stay.
  var levels: [UInt8]?
  /// The size of the result compared with that which was requested; below 1 for previews.
  var overlayFactor = 1.0
  /// Warnings about what differs from the configuration.
  private(set) var warnings: [Warning] = []
  /// The part of the displayed image that was chosen by its pixels; `nil` if none was.
  private(set) var crop: PixelRect?
  /// The faces of the displayed image; `nil` if they were not searched.
  var faces: [PixelRect]?
}

extension PlanDraft {
  /// Creates the draft for an image with `header`.
  /// - `configuration`: A configuration whose fields were validated when it was read.
  /// - `findings`: What was found in the pixels of the image; `nil` if they were not searched.
  init(
    _ configuration: ProcessingConfiguration, of header: ImageHeader, _ findings: ImageFindings? = nil
  ) throws(PipelineError) {
    try configuration.validateCombination()
    if !(configuration.tolerateDamage ?? false) { try Self.checkHeader(header) }
    let orientation = Self.orientation(configuration, of: header)
    let stored = PixelSize(width: header.width, height: header.height)
    var (framed, found, isAllBorder) = (configuration, PixelRect?.none, false)
    let seen = findings?.bySearch[configuration.hiddenAreas(ofSearchIn: header)]
    if let seen, let search = try TrimSearch(configuration, of: header) {
      found = seen.trims[search].flatMap(\.self)
      isAllBorder = found == nil
    }
    if let found { framed.crop = Crop(found) }
    let shown = stored.rotated(by: orientation)
    var framing = try Framing(shown: shown, configuration: framed)
    let faces =
      configuration.findsFaces
      ? findings?.bySearch[configuration.hiddenAreas(ofFacesIn: header)]?.faces[orientation] : nil
    let part = try framed.crop?.window(in: shown) ?? Window(shown)
    let shownFaces = (faces ?? []).filter { $0.isPartly(in: part) }
    let gravity = FaceGravity(
      framed.choosesByFaces ? shownFaces : [], margin: configuration.minFaceMargin ?? FaceGravity.defaultMargin,
      window: framing.window, part: part)
    let salient =
      framed.choosesBySaliency
      ? seen?.saliency?.center(of: framing.window, in: part, orientation, shown: shown) : nil
    if let center = gravity?.center ?? salient {
      framed.focusPoint = Point(x: center.x / Double(shown.width), y: center.y / Double(shown.height))
      framing = try Framing(shown: shown, configuration: framed)
      found = PixelRect(framing.window)
    }
    self.init(configuration: configuration, orientation: orientation, framing: framing, faces: faces)
    crop = found
    if isAllBorder { warnings.append(.ignoredTrim) }
    if let faces { warnFaces(faces, shown: shownFaces, keptBy: gravity == nil ? nil : framing.window) }
  }

  /// Adds warnings about the faces that were found.
  /// - `shown`: Those in the part that `crop` and `trim` leave.
  /// - `window`: The window that they have chosen; `nil` if they have chosen none.
  private mutating func warnFaces(_ faces: [PixelRect], shown: [PixelRect], keptBy window: Window?) {
    if configuration.choosesByFaces, window == nil { warnings.append(.missingFaces(field: "gravity")) }
    if configuration.hidesFaces, faces.isEmpty { warnings.append(.missingFaces(field: "regions")) }
    guard let window else { return }
    let kept = shown.count { $0.isWhole(in: window) }
    if kept < shown.count { warnings.append(.cutFaces(shown.count, kept: kept)) }
  }

  /// Returns the orientation of the stored image, including the requested rotation and flips.
  static func orientation(_ configuration: ProcessingConfiguration, of header: ImageHeader) -> Orientation {
    header.orientation.rotated(
      quarters: (configuration.rotation ?? 0) / 90, flipsColumns: configuration.flipHorizontal ?? false,
      flipsRows: configuration.flipVertical ?? false)
  }

  /// Throws an error if the header is damaged.
  /// - Throws: `corruptImage` if the header can be read only with damage tolerated.
  static func checkHeader(_ header: ImageHeader) throws(PipelineError) {
    guard header.isDamaged else { return }
    throw PipelineError(.corruptImage, "the image's header is damaged; set tolerate_damage to decode it anyway")
  }

  /// This draft without `never_larger`, which buffers the result.
  var allowingLarger: PlanDraft {
    guard configuration.neverLarger ?? false else { return self }
    var draft = self
    draft.configuration.neverLarger = nil
    draft.warnings.append(.ignoredNeverLarger)
    return draft
  }

  /// Returns this draft with a format whose encoder needs less memory, or this draft unchanged if there is no such
  /// format, the configuration specifies one, or `accept` does not list it.
  func fallingBack(_ header: ImageHeader) -> PlanDraft {
    let format = Plan.formats(of: header, configuration, size: framing.canvasSize)[0]
    let isAuto = configuration.preferredFormat == .auto
    guard configuration.preferredFormat?.imageFormat == nil, isAuto || format.traits.output?.hasFallback ?? false else {
      return self
    }
    let accepted = isAuto ? (configuration.accept ?? .standard).formats : [.jpeg, .png]
    let usable: [OutputFormat] = header.hasAlpha ? [.png] : [.jpeg, .png]
    guard let fallback = usable.first(where: { $0.imageFormat.map(accepted.contains) ?? false }) else { return self }
    var draft = self
    draft.configuration.preferredFormat = fallback
    let planned = isAuto ? OutputFormat.auto.rawValue : format.rawValue
    draft.warnings.append(.changedFormat(fallback.rawValue, planned: planned))
    return draft
  }

  /// Returns the smallest of `scales`, in eighths, that is sufficient for this rendition.
  func decodeScale(of scales: [Int]) -> Int {
    // A reduced decode averages signals, not light.
    if configuration.resampling(framing) != .stored || configuration.resamplingKernel == .nearest { return 8 }
    return Geometry.decodeScale(
      window: framing.window.pixelSize, target: framing.imageSize, scales: scales,
      residual: isPreview ? 1 : Plan.minResidual(quality: configuration.rowQuality))
  }
}

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
    let isPlanar = header.colorSpace == .ycbcr && !header.hasAlpha
    let drawsInColor = (configuration.overlays ?? []).contains {
      !isPlanar || ($0.blend ?? .over) != .over || $0.tile ?? false
    }
    // Converting gray with a gray profile yields gray, so no other pixel format is needed.
    return !filtersInColor && !padsInColor && !drawsInColor && !mergesPlanes
      && (color.target == nil || header.isGray)
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

  /// Returns the warnings of the draft, and those about fields that the image or its format make void.
  func knownWarnings(
    _ header: ImageHeader, _ colorObstacle: ColorObstacle?, _ depthObstacle: DepthObstacle?
  ) -> [Warning] {
    var known: [Warning] = []
    let bounds = [configuration.maxWidth, configuration.maxHeight, configuration.minWidth, configuration.minHeight]
    if (configuration.scaleFactor ?? 1) > 1, bounds.allSatisfy({ $0 == nil }) {
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

extension ProcessingConfiguration {
  /// The radius of `sharpenReduced`, in pixels of the result: about the width of the blur that a reduction leaves.
  private static let sharpeningRadius = 0.7
  /// The base 2 logarithm of the reduction from which on an image is sharpened by the whole amount.
  private static let wholeSharpening = 3.0

  /// Returns the filter that `sharpenReduced` stands for, or none if the image is not reduced enough to be sharpened.
  /// - `reduction`: the ratio of the framing's window to the size of the image in the result.
  func sharpening(reduction: Double) -> [Filter] {
    guard let sharpenReduced, reduction > 1 else { return [] }
    let share = min(1, log2(reduction) / Self.wholeSharpening)
    let amount = (100 * sharpenReduced * share).rounded() / 100
    guard amount > 0 else { return [] }
    return [Filter(name: FilterKind.sharpen.rawValue, parameters: ["radius": Self.sharpeningRadius, "amount": amount])]
  }
  /// Returns the arithmetic with which an image with `framing` is resized.
  func resampling(_ framing: Framing) -> Resampling {
    // Without mixing, there is nothing to compute in light.
    let mixes = framing.isResampled && resamplingKernel != .nearest
    if mixes, resizeInLinearLight ?? false { return .linearLight }
    // Chroma of another size than luma would give new colors.
    if framing.isResampled, !mixes { return .pillow }
    return exactResize ?? false ? .pillow : .stored
  }
}
