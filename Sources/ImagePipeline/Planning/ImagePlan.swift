internal import ImageCodecs
internal import ImageKernels

/// All decisions for one image and each of its renditions, made before decoding starts.
package struct ImagePlan: Sendable {
  /// The plan of each rendition, in the order of the request; the error if a rendition cannot be produced.
  package internal(set) var renditions: [Result<Plan, PipelineError>] {
    didSet { plans = renditions.compactMap { try? $0.get() } }
  }
  /// The plans of the renditions that can be produced.
  ///
  /// They are stored, as copying a plan takes a hundred retains.
  package private(set) var plans: [Plan]
  /// An upper bound of the bytes that the image charges to its budget: its decoder once, and the stages of each
  /// rendition.
  package internal(set) var workingSetByteCount: UInt64

  /// Combines the plans of all renditions.
  /// - `decodeByteCount`: The decoder's share of each plan's working set, at the scale that all plans share.
  init(_ renditions: [Result<Plan, PipelineError>], decodeByteCount: UInt64) {
    self.renditions = renditions
    plans = renditions.compactMap { try? $0.get() }
    workingSetByteCount = plans.reduce(decodeByteCount) { $0 + $1.workingSetByteCount - decodeByteCount }
  }

  /// The plan of an image with one result.
  package init(_ plan: Plan) {
    (renditions, plans) = ([.success(plan)], [plan])
    workingSetByteCount = plan.workingSetByteCount
  }

  /// The bytes to reserve for the image: its working set, and the compressed bytes that wait to be read.
  package var reservedByteCount: UInt64 { workingSetByteCount + waitingByteCount }

  /// An upper bound of the compressed bytes that can accumulate before work on the image pauses: those that wait, and
  /// those of a strip or a frame, within which it does not pause.
  private var waitingByteCount: UInt64 {
    let maximum = UInt64(ByteFlow.maxWaitingByteCount + EncodeStage.bufferByteCount)
    guard passedThrough == nil else { return maximum }
    var (all, atOnce) = (UInt64(0), UInt64(0))
    for plan in plans {
      guard let whole = try? plan.encoder.maxByteCount() else { return maximum }
      let height = UInt64(max(1, plan.outputSize.height))
      let isAnimation = plan.frames.isAnimation
      // Filters emit the rows that they hold back at once, after the last row of the image.
      let rowCount = UInt64(OrientStage.stripRowCount + plan.filters.haloRowCount)
      atOnce += isAnimation ? whole : min(whole, (whole / height + 1) * rowCount)
      all += isAnimation ? whole + maximum : whole
    }
    return min(all, maximum + atOnce)
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
      let encodings = measured + 2 * UInt64(plan.byteLimit?.choice?.formats.count ?? 0)
      let overlayPixelCount = plan.overlays.reduce(0) { $0 + $1.workPixelCount }
      return sum + outputPixelCount * encodings + imagePixelCount * UInt64(1 + plan.filters.passes.count)
        + overlayPixelCount
    }
  }

  /// The plan of an image that is passed through; `nil` for an image that is decoded.
  var passedThrough: Plan? { plans.first?.passthrough == .decoded ? nil : plans.first }
}

/// The properties of a planned image that are reported and admitted.
package struct PlannedImage: Sendable {
  /// The properties of each rendition, in the order of the request; the error if a rendition cannot be produced.
  package var renditions: [Result<PlannedResult, PipelineError>]
  /// An upper bound of the bytes that the image charges to its budget.
  package var workingSetByteCount: UInt64
  /// The bytes to reserve for the image: its working set, and the compressed bytes that wait to be read.
  package var reservedByteCount: UInt64

  package init(
    renditions: [Result<PlannedResult, PipelineError>], workingSetByteCount: UInt64, reservedByteCount: UInt64
  ) {
    self.renditions = renditions
    self.workingSetByteCount = workingSetByteCount
    self.reservedByteCount = reservedByteCount
  }

  /// Creates the properties of a plan.
  package init(_ plan: ImagePlan) {
    self.init(
      renditions: plan.renditions.map { rendition in rendition.map { PlannedResult($0) } },
      workingSetByteCount: plan.workingSetByteCount, reservedByteCount: plan.reservedByteCount)
  }

  /// Whether at least one rendition can be produced.
  package var hasResults: Bool { renditions.contains { if case .success = $0 { true } else { false } } }
}

/// The properties of one planned rendition.
package struct PlannedResult: Sendable, Hashable {
  /// The properties of the image.
  package var input: ImageInfo
  /// The properties of the result.
  package var output: ImageInfo
  /// The size of the whole decoded image in bytes.
  package var decodedByteCount: UInt64
  /// The warnings of the report that are known in advance.
  package var warnings: [Warning]

  package init(input: ImageInfo, output: ImageInfo, decodedByteCount: UInt64, warnings: [Warning]) {
    self.input = input
    self.output = output
    self.decodedByteCount = decodedByteCount
    self.warnings = warnings
  }

  /// Creates the properties of a rendition's plan.
  package init(_ plan: Plan) {
    self.init(
      input: plan.input, output: plan.outputInfo, decodedByteCount: plan.decodedByteCount,
      warnings: plan.knownWarnings)
  }
}
