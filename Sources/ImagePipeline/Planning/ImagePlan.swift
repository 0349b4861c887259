internal import ImageCodecs

/// Everything that was decided for one image and each of its renditions before any of it is decoded.
package struct ImagePlan: Sendable {
  /// In the order in which they were asked for; of those that can't be made, why.
  package let renditions: [Result<Plan, PipelineError>]
  /// An upper bound of what the image will charge to its budget: its decoder once, and the stages of each rendition.
  package internal(set) var workingSetByteCount: UInt64

  /// - `decodeByteCount`: the decoder's share, at the scale that all plans have.
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

  /// What is reserved for the image: its working set, and the compressed bytes that wait for their reader.
  package var reservedByteCount: UInt64 { workingSetByteCount + waitingByteCount }

  /// An upper bound of the compressed bytes that wait until work on the image pauses.
  private var waitingByteCount: UInt64 {
    let most = UInt64(OutputGauge.maxByteCount + EncodeStage.bufferByteCount)
    guard passedThrough == nil else { return most }
    return plans.reduce(0) { sum, plan in min(most, sum + ((try? plan.encoder.maxByteCount()) ?? most)) }
  }

  /// The pixels that are written for all results: each once for its encoder, and those of the image, not of what pads it,
  /// once for scaling and once for each pass of a filter.
  ///
  /// What is read of the image is limited by `maxPixels`, so a small result of a large image is cheap.
  var workPixelCount: UInt64 {
    guard passedThrough == nil else { return 0 }
    return plans.reduce(0) { sum, plan in
      let imagePixelCount = UInt64(plan.framing.imageSize.pixelCount)
      return sum + UInt64(plan.outputSize.pixelCount) + imagePixelCount * UInt64(1 + plan.filters.passes.count)
    }
  }

  /// The plan of an image that is not decoded.
  var passedThrough: Plan? { plans.first.flatMap { $0.passthrough == .decoded ? nil : $0 } }

  /// The plans of those that can be made.
  package var plans: [Plan] {
    renditions.compactMap { if case .success(let plan) = $0 { plan } else { nil } }
  }
}

/// What one rendition's configuration comes to, before the scale at which all of them are decoded is known.
struct PlanDraft {
  private(set) var configuration: ProcessingConfiguration
  let orientation: Orientation
  let framing: Framing
  /// Whether speed matters more than the last of its quality.
  let isPreview: Bool
  /// Why the result is of another format than the image.
  private(set) var fallbackWarning: String?

  init(_ configuration: ProcessingConfiguration, orientation: Orientation, framing: Framing, isPreview: Bool) {
    self.configuration = configuration
    self.orientation = orientation
    self.framing = framing
    self.isPreview = isPreview
  }

  /// - `configuration`: one whose fields were checked when it was read.
  init(_ configuration: ProcessingConfiguration, of header: ImageHeader) throws(PipelineError) {
    try configuration.validateCombination()
    if !(configuration.tolerateDamage ?? false) { try Self.checkHeader(header) }
    let orientation = header.orientation.turned(
      quarters: (configuration.rotation ?? 0) / 90, flipsColumns: configuration.flipHorizontal ?? false,
      flipsRows: configuration.flipVertical ?? false)
    let stored = PixelSize(width: header.width, height: header.height)
    self.init(
      configuration, orientation: orientation,
      framing: try Framing(shown: stored.turned(by: orientation), configuration: configuration), isPreview: false)
  }

  /// - Throws: `corruptImage` where the header can be read only where damage is tolerated.
  static func checkHeader(_ header: ImageHeader) throws(PipelineError) {
    guard header.isDamaged else { return }
    throw PipelineError(.corruptImage, "the image's header is damaged; set tolerate_damage to decode it anyway")
  }

  /// The same with a result of a format whose encoder needs less memory, where no format is asked for; else this.
  func fallingBack(_ header: ImageHeader) -> PlanDraft {
    let format = Plan.format(header: header, configuration: configuration)
    guard configuration.preferredFormat?.imageFormat == nil, format.traits.output?.hasFallback ?? false else {
      return self
    }
    var draft = self
    let fallback = header.hasAlpha ? OutputFormat.png : .jpeg
    draft.configuration.preferredFormat = fallback
    draft.fallbackWarning =
      "the result is \(fallback.rawValue) instead of \(format.rawValue), whose encoder needs more than image_memory_limit"
    return draft
  }

  /// The smallest of `scales` that serves this rendition.
  func decodeScale(of scales: [Int]) -> Int {
    Geometry.decodeScale(
      window: framing.window.pixelSize, target: framing.imageSize, scales: scales,
      residual: isPreview ? 1 : Plan.minResidual(quality: configuration.compressionQuality ?? 1))
  }
}
