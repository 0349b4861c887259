internal import ImagePipeline
internal import WorkerIsolation

/// The worker's own account of the dialogue with a helper about one image.
///
/// Code that has taken over a helper can send anything at any time. A response is accepted only if it answers its
/// request, with the counts that the request and the plan have fixed; any other ends the helper. What remains possible
/// is a wrong result of this image, which an honest helper could have sent for another one.
struct HelperDialogue {
  private enum Phase {
    case readingHeader
    case planned(PlannedImage)
    case started(PlannedImage)
  }

  private enum RenditionState {
    case working(byteCount: UInt64)
    /// The rendition could not be planned; its error is reported once more.
    case refused
    case ended
  }

  private let limits: ImageLimits
  private let recordsSpans: Bool
  private var phase = Phase.readingHeader
  private var isPreview = false
  /// Whether the request keeps gain maps, whose results are spooled.
  private var keepsGainMap = false
  /// Whether a result may have several frames, which are spooled.
  var mayHaveFrames = false
  private var renditions: [RenditionState] = []
  /// The number of the image's bytes that were supplied.
  private var suppliedByteCount: UInt64 = 0
  /// The total size of the temporary files that were supplied.
  private var fileByteCount: UInt64 = 0
  /// The output of the current request, in bytes.
  private var outputByteCount: UInt64 = 0

  init(limits: ImageLimits, recordsSpans: Bool) {
    self.limits = limits
    self.recordsSpans = recordsSpans
  }

  /// The plan of the image; `nil` until it was planned.
  var plan: PlannedImage? {
    switch phase {
    case .readingHeader: nil
    case .planned(let plan), .started(let plan): plan
    }
  }

  /// Whether every rendition has ended.
  var hasEnded: Bool {
    guard plan != nil else { return false }
    return renditions.allSatisfy { if case .ended = $0 { true } else { false } }
  }

  private var isStarted: Bool { if case .started = phase { true } else { false } }

  /// Notes that bytes of the image are supplied.
  mutating func supply(byteCount: Int) { suppliedByteCount += UInt64(byteCount) }

  /// Notes that a request is sent.
  mutating func begin() { outputByteCount = 0 }

  // MARK: Accept responses

  /// Returns whether a response answers a request; then its plan and its counts are part of this account.
  ///
  /// - `isCancelled`: whether the image was cancelled.
  mutating func accepts(_ response: HelperResponse, to request: HelperRequest.Work, isCancelled: Bool) -> Bool {
    acceptsPlan(response, to: request) && acceptsCounts(response, to: request) && acceptsStart(response, to: request)
      && acceptsOutput(response) && acceptsOutcomes(response, isCancelled: isCancelled)
      && (response.error.map { isPlausible($0, isCancelled: isCancelled) } ?? true)
      && response.spans.count <= (recordsSpans ? Self.maxSpanCount : 0)
      && response.spans.allSatisfy(\.isPlausible)
      && (response.isPartial ? isPlausiblePart(response) : isComplete(response, to: request))
  }

  /// The maximum number of spans in a response: of each stage of each rendition.
  private static let maxSpanCount = 8 * Rendition.maxCount

  private mutating func acceptsPlan(_ response: HelperResponse, to request: HelperRequest.Work) -> Bool {
    guard let plan = response.work.plan else { return true }
    guard case .readingHeader = phase, case .readHeader(let planning) = request.request,
      plan.renditions.count == planning.results.count, plan.workingSetByteCount <= plan.reservedByteCount
    else { return false }
    var side = Int.max
    keepsGainMap = planning.results.keepsGainMap
    if case .preview(_, let maxSide) = planning.results { (side, isPreview) = (maxSide, true) }
    for (index, rendition) in plan.renditions.enumerated() {
      guard case .success(let result) = rendition else { continue }
      // Only a request for AUTO leaves the format open.
      let isOpen = result.output.format.isEmpty && planning.results.choosesFormat(at: index)
      guard result.input.isOfKnownFormat, result.output.isOfKnownFormat || isOpen,
        max(result.output.size.width, result.output.size.height) <= side
      else { return false }
    }
    phase = .planned(plan)
    renditions = plan.renditions.map { if case .success = $0 { .working(byteCount: 0) } else { .refused } }
    return true
  }

  private func acceptsCounts(_ response: HelperResponse, to request: HelperRequest.Work) -> Bool {
    guard response.work.consumedByteCount <= request.input.count else { return false }
    guard case .readHeader = request.request else { return response.work.bufferedByteCount == 0 }
    return response.work.bufferedByteCount <= limits.memory
  }

  private mutating func acceptsStart(_ response: HelperResponse, to request: HelperRequest.Work) -> Bool {
    guard response.work.isStarted else { return true }
    guard case .planned(let plan) = phase, plan.hasResults else { return false }
    switch request.request {
    case .start: break
    case .readHeader(let planning): guard plan.reservedByteCount <= planning.admittedByteCount else { return false }
    case .advance: return false
    }
    phase = .started(plan)
    return true
  }

  private mutating func acceptsOutput(_ response: HelperResponse) -> Bool {
    guard !response.segments.isEmpty else { return true }
    guard case .started(let plan) = phase else { return false }
    for segment in response.segments {
      guard renditions.indices.contains(segment.rendition), segment.byteCount > 0,
        case .working(let byteCount) = renditions[segment.rendition],
        case .success(let result) = plan.renditions[segment.rendition]
      else { return false }
      let sum = byteCount + UInt64(segment.byteCount)
      guard sum <= maxByteCount(of: result) else { return false }
      renditions[segment.rendition] = .working(byteCount: sum)
      outputByteCount += UInt64(segment.byteCount)
    }
    return outputByteCount <= maxOutputByteCount(plan)
  }

  private mutating func acceptsOutcomes(_ response: HelperResponse, isCancelled: Bool) -> Bool {
    guard !response.work.ends.isEmpty else { return true }
    guard isStarted else { return false }
    for (index, outcome) in response.work.ends {
      guard renditions.indices.contains(index) else { return false }
      switch (renditions[index], outcome) {
      case (.working(let byteCount), .success(let report)):
        guard isPlausible(report), report.outputByteCount == byteCount else { return false }
      case (.working, .failure(let error)), (.refused, .failure(let error)):
        guard isPlausible(error, isCancelled: isCancelled) else { return false }
      case (.refused, .success), (.ended, _): return false
      }
      renditions[index] = .ended
    }
    return true
  }

  /// Whether a response before the last one has output and nothing that belongs to the end of a request.
  private func isPlausiblePart(_ response: HelperResponse) -> Bool {
    !response.segments.isEmpty && response.error == nil && response.work.ends.isEmpty && !response.work.isPaused
  }

  /// Whether the last response to a request contains all that the request asked for.
  ///
  /// A request that was answered without progress would be repeated without end, and so would the whole image after its
  /// last bytes.
  private func isComplete(_ response: HelperResponse, to request: HelperRequest.Work) -> Bool {
    let (consumed, isPaused) = (response.work.consumedByteCount, response.work.isPaused)
    guard !isPaused || outputByteCount > 0 else { return false }
    guard response.error == nil else { return true }
    let isConsumed = consumed == request.input.count
    let isDone = isPaused || hasEnded || !(isConsumed && request.isLast)
    switch request.request {
    case .readHeader: return plan == nil ? isConsumed && !request.isLast : !isStarted || isDone
    case .start: return isStarted
    case .advance:
      let hasProgress = consumed > 0 || outputByteCount > 0 || !response.work.ends.isEmpty
      return isStarted && isDone && (hasProgress || request.input.isEmpty && !request.isLast)
    }
  }

  // MARK: Limits

  /// Room for what does not depend on the image's size, in bytes.
  private static let margin: UInt64 = 1 << 20
  /// The maximum number of bytes for a pixel of a result, whatever its format.
  private static let bytesPerResultPixel: UInt64 = 16
  /// The maximum number of bytes for a frame of a result in addition to its pixels.
  ///
  /// One that is shown for longer than its format can state becomes up to 101 frames.
  private static let bytesPerFrame: UInt64 = 8 << 10
  /// The maximum number of bytes for a pixel in temporary files: three channels of 32 bits.
  private static let bytesPerSpilledPixel: UInt64 = 12

  /// The maximum size of a result: that of its pixels, and that of the image if it may be passed through.
  private func maxByteCount(of result: PlannedResult) -> UInt64 {
    var byteCount = Self.pixelCount(result.output) * Self.bytesPerResultPixel
    // Only a request for frames can have a result with several.
    if mayHaveFrames, result.output.frameCount != 1 {
      let all = (byteCount + Self.bytesPerFrame).multipliedReportingOverflow(by: maxFrameCount(of: result.input))
      byteCount = all.overflow ? 1 << 60 : min(all.partialValue, 1 << 60)
    }
    return byteCount + (isPreview ? 0 : 2 * suppliedByteCount) + Self.margin
  }

  /// The maximum number of frames of a result: those of the image, as far as they are known, within its limits.
  private func maxFrameCount(of input: ImageInfo) -> UInt64 {
    let known = input.frameCount > 0 ? UInt64(input.frameCount) : .max
    let within = limits.maxAnimationPixels / max(1, Self.pixelCount(input)) + 1
    return min(known, within, UInt64(limits.maxAnimationFrames))
  }

  /// The maximum output of a request: what the image has reserved for it, and what a response may have.
  private func maxOutputByteCount(_ plan: PlannedImage) -> UInt64 {
    plan.reservedByteCount - plan.workingSetByteCount + UInt64(HelperLayout.outputByteCount)
  }

  /// How many times as large as an image its compressed frames can be in a result, such as those of a lossy animation that
  /// are stored without loss.
  private static let frameFactor: UInt64 = 64

  /// The size to which the helper may extend a temporary file: that of the image, or that of a result with frames.
  var maxFileByteCount: UInt64 {
    guard mayHaveFrames else { return suppliedByteCount }
    let planned = plan?.renditions.reduce(UInt64(0)) { maximum, rendition in
      guard case .success(let result) = rendition else { return maximum }
      return max(maximum, maxByteCount(of: result))
    }
    return max(suppliedByteCount, min(suppliedByteCount * Self.frameFactor, planned ?? .max))
  }

  /// Returns whether the helper may have another temporary file; the size of one that it extends is 0.
  ///
  /// The system limits the size of those that it extends, which may be needed before the worker knows the plan.
  mutating func allowsFile(byteCount: UInt64) -> Bool {
    if byteCount == 0 { return true }
    guard let plan, byteCount <= UInt64(Int64.max) - fileByteCount else { return false }
    let maximum = plan.renditions.map { rendition in
      guard case .success(let result) = rendition else { return UInt64(0) }
      // Blocks of pixels at the edges are complete.
      let (width, height) = (UInt64(result.input.size.width), UInt64(result.input.size.height))
      let edges = 64 * (min(width, 65535) + min(height, 65535) + 64)
      let pixelCount = min(Self.pixelCount(result.input), limits.maxPixels > 0 ? limits.maxPixels : .max)
      return (pixelCount + edges) * Self.bytesPerSpilledPixel
    }.max()
    // Results with gain maps are spooled: the image, and its map, which is smaller.
    let spooled = plan.renditions.reduce(UInt64(0)) { sum, rendition in
      guard case .success(let result) = rendition else { return sum }
      return sum + 2 * min(maxByteCount(of: result), 1 << 50)
    }
    guard let maximum, fileByteCount + byteCount <= maximum + (keepsGainMap ? spooled : 0) else { return false }
    fileByteCount += byteCount
    return true
  }

  /// The number of pixels, as far as sums of bytes cannot overflow.
  private static func pixelCount(_ image: ImageInfo) -> UInt64 {
    min(UInt64(image.size.width) * UInt64(image.size.height), 1 << 50)
  }

  // MARK: Plausibility

  private func isPlausible(_ report: ProcessingReport) -> Bool {
    report.input.isOfKnownFormat && report.output.isOfKnownFormat
      && (report.compressionQuality.map { (0...1).contains($0) } ?? true)
      && (report.similarity?.isFinite ?? true)
      && report.formatTrials.count <= Self.maxTrialCount && report.formatTrials.allSatisfy(\.isPlausible)
  }

  /// The maximum number of formats that are compared; WebP can be lossy and lossless.
  private static let maxTrialCount = 8

  /// Whether work on an image can end with this error.
  private func isPlausible(_ error: PipelineError, isCancelled: Bool) -> Bool {
    switch error.code {
    case .invalidField, .emptyImage, .unknownFormat, .unsupportedImage, .corruptImage, .truncatedImage, .limitExceeded,
      .unservedField, .overloaded, .internalDefect:
      true
    case .cancelled: isCancelled
    case .unknownPreset, .uploadStalled, .codecCrashed, .codecStopped: false
    }
  }
}
