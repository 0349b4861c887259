internal import ImageCodecs
internal import ImageKernels

/// All decisions for one image and each of its renditions, made before decoding starts.
package struct ImagePlan: Sendable {
  /// The plan of each rendition, in the order of the request; the error if a rendition cannot be produced.
  package internal(set) var renditions: [Result<Plan, PipelineError>]
  /// An upper bound of the bytes that the image charges to its budget: its decoder once, and the stages of each
  /// rendition.
  package internal(set) var workingSetByteCount: UInt64

  /// Combines the plans of all renditions.
  /// - `decodeByteCount`: The decoder's share of each plan's working set, at the scale that all plans share.
  init(_ renditions: [Result<Plan, PipelineError>], decodeByteCount: UInt64) {
    self.renditions = renditions
    workingSetByteCount = renditions.reduce(decodeByteCount) { sum, plan in
      guard case .success(let plan) = plan else { return sum }
      return sum + plan.workingSetByteCount - decodeByteCount
    }
  }

  /// The plan of an image with one result.
  package init(_ plan: Plan) {
    renditions = [.success(plan)]
    workingSetByteCount = plan.workingSetByteCount
  }

  /// The bytes to reserve for the image: its working set, and the compressed bytes that wait to be read.
  package var reservedByteCount: UInt64 { workingSetByteCount + waitingByteCount }

  /// An upper bound of the compressed bytes that can accumulate before work on the image pauses.
  private var waitingByteCount: UInt64 {
    let most = UInt64(ByteFlow.maxWaitingByteCount + EncodeStage.bufferByteCount)
    guard passedThrough == nil else { return most }
    return plans.reduce(0) { sum, plan in min(most, sum + ((try? plan.encoder.maxByteCount()) ?? most)) }
  }

  /// The number of pixels that are written for all results.
  ///
  /// Every pixel of a result counts once for its encoder, and in rows that an overlay covers once for each of these. Pixels
  /// of the image, but not its padding, also count once for scaling and once for each pass of a filter. The pixels that
  /// are read are limited by `maxPixels` instead, so a small result of a large image counts little. With a target for the similarity, each trial counts twice: for its
  /// encoder and for its comparison. So does each format of a choice.
  var workPixelCount: UInt64 {
    guard passedThrough == nil else { return 0 }
    return plans.reduce(0) { sum, plan in
      let imagePixelCount = UInt64(plan.framing.imageSize.pixelCount)
      let outputPixelCount = UInt64(plan.outputSize.pixelCount)
      let measured = plan.byteLimit?.similarity == nil ? 1 : 2 * UInt64(SimilaritySearch.maxTrials)
      let encodings = measured + 2 * UInt64(plan.byteLimit?.choice?.candidates.count ?? 0)
      let overlayPixelCount = plan.overlays.reduce(0) { $0 + $1.workPixelCount }
      return sum + outputPixelCount * encodings + imagePixelCount * UInt64(1 + plan.filters.passes.count)
        + overlayPixelCount
    }
  }

  /// The plan of an image that is passed through; `nil` for an image that is decoded.
  var passedThrough: Plan? { plans.first.flatMap { $0.passthrough == .decoded ? nil : $0 } }

  /// The plans of the renditions that can be produced.
  package var plans: [Plan] {
    renditions.compactMap { if case .success(let plan) = $0 { plan } else { nil } }
  }
}

/// The decisions for one rendition that do not depend on the common decode scale.
struct PlanDraft {
  private(set) var configuration: ProcessingConfiguration
  let orientation: Orientation
  let framing: Framing
  /// Whether the result is a preview, for which speed matters more than quality.
  let isPreview: Bool
  /// Whether the image is a gain map, of which gray stays gray also where it is padded.
  let isGainMap: Bool
  /// The new value of each level of a gain map; `nil` if they stay.
  let levels: [UInt8]?
  /// The size of the result compared with that which was requested; below 1 for previews.
  let overlayFactor: Double
  /// Warnings about what differs from the configuration.
  private(set) var warnings: [Warning] = []
  /// The part of the displayed image that was chosen by its pixels; `nil` if none was.
  private(set) var crop: PixelRect?
  /// The faces of the displayed image; `nil` if they were not searched.
  let faces: [PixelRect]?

  init(
    _ configuration: ProcessingConfiguration, orientation: Orientation, framing: Framing, isPreview: Bool,
    isGainMap: Bool = false, levels: [UInt8]? = nil, overlayFactor: Double = 1, faces: [PixelRect]? = nil
  ) {
    self.configuration = configuration
    self.orientation = orientation
    self.framing = framing
    self.isPreview = isPreview
    self.isGainMap = isGainMap
    self.levels = levels
    self.overlayFactor = overlayFactor
    self.faces = faces
  }

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
    if let findings, let search = try TrimSearch(configuration, of: header) {
      found = findings.trims[search].flatMap(\.self)
      isAllBorder = found == nil
    }
    if let found { framed.crop = Crop(found) }
    let shown = stored.turned(by: orientation)
    var framing = try Framing(shown: shown, configuration: framed)
    let faces = configuration.findsFaces ? findings?.faces[orientation] : nil
    let part = try framed.crop?.window(in: shown) ?? Window(shown)
    let shownFaces = (faces ?? []).filter { $0.isPartly(in: part) }
    let gravity = FaceGravity(
      framed.choosesByFaces ? shownFaces : [], margin: configuration.minFaceMargin ?? FaceGravity.defaultMargin,
      window: framing.window, part: part)
    let salient =
      framed.choosesBySaliency
      ? findings?.saliency?.center(of: framing.window, in: part, orientation, shown: shown) : nil
    if let center = gravity?.center ?? salient {
      framed.focusPoint = Point(x: center.x / Double(shown.width), y: center.y / Double(shown.height))
      framing = try Framing(shown: shown, configuration: framed)
      found = PixelRect(framing.window)
    }
    self.init(configuration, orientation: orientation, framing: framing, isPreview: false, faces: faces)
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
    header.orientation.turned(
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
  /// format or the configuration specifies one.
  func fallingBack(_ header: ImageHeader) -> PlanDraft {
    let format = Plan.format(header: header, configuration: configuration)
    let isAuto = configuration.preferredFormat == .auto
    guard configuration.preferredFormat?.imageFormat == nil, isAuto || format.traits.output?.hasFallback ?? false else {
      return self
    }
    var draft = self
    let fallback = header.hasAlpha ? OutputFormat.png : .jpeg
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
