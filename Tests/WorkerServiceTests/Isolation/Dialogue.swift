import ImagePipeline
import Testing

@testable import WorkerService

/// Requests and responses of a dialogue with a helper, and accounts of it.
enum Dialogue {
  static let limits = ImageLimits(memory: 4 << 20)
  /// The maximum output of a request to an image that has reserved nothing for it.
  static let maxResponseByteCount = 640 << 10
  /// The maximum size of the result of 8 by 8 pixels, of an image that has supplied nothing.
  static let maxResultByteCount = 64 * 16 + (1 << 20)

  static func info(_ format: String = "jpeg", width: Int = 8) -> ImageInfo {
    ImageInfo(
      format: format, size: PixelSize(width: width, height: 8), orientation: 1, hasAlpha: false, bitDepth: 8,
      colorSpace: "sRGB", frameCount: 1)
  }

  static func planned(
    _ input: ImageInfo = info(), _ output: ImageInfo = info()
  ) -> Result<PlannedResult, PipelineError> {
    .success(PlannedResult(input: input, output: output, decodedByteCount: 1, warnings: []))
  }

  static let refused = Result<PlannedResult, PipelineError>.failure(PipelineError(.invalidField, ""))

  static func planning(
    _ count: Int = 1, maxSide: Int? = nil, admitted: UInt64 = 0
  ) -> WorkRequest.Planning {
    let configuration = ProcessingConfiguration()
    return WorkRequest.Planning(
      results: maxSide.map { .preview(configuration, maxSide: $0) }
        ?? .renditions(Array(repeating: configuration, count: count)),
      admittedByteCount: admitted)
  }

  static func request(
    _ request: WorkRequest, _ byteCount: Int = 0, isLast: Bool = false
  ) -> HelperRequest.Work { HelperRequest.Work(request: request, input: 0..<byteCount, isLast: isLast) }

  static func response(_ change: (inout HelperResponse) -> Void) -> HelperResponse {
    var response = HelperResponse()
    change(&response)
    return response
  }

  static func plan(
    _ renditions: [Result<PlannedResult, PipelineError>] = [planned()], workingSet: UInt64 = 1, reserved: UInt64 = 1,
    _ change: (inout HelperResponse) -> Void = { _ in }
  ) -> HelperResponse {
    response {
      $0.work.plan = PlannedImage(
        renditions: renditions, workingSetByteCount: workingSet, reservedByteCount: reserved)
      change(&$0)
    }
  }

  static func report(_ byteCount: Int, _ change: (inout ProcessingReport) -> Void = { _ in })
    -> ProcessingReport
  {
    var report = ProcessingReport(
      input: info(), output: info(), inputByteCount: 1, outputByteCount: UInt64(byteCount), timings: StageTimings(),
      peakMemoryByteCount: 1, warnings: [])
    change(&report)
    return report
  }

  static func end(_ ends: WorkResponse.End...) -> HelperResponse { response { $0.work.ends = ends } }

  static func output(_ segments: (Int, Int)..., isPartial: Bool = false) -> HelperResponse {
    response { response in
      response.isPartial = isPartial
      response.segments = segments.map { HelperResponse.Segment(rendition: $0.0, byteCount: $0.1) }
    }
  }

  /// An account of an image that was planned, and started unless `isStarted` is false.
  static func account(
    _ renditions: [Result<PlannedResult, PipelineError>] = [planned()], reserved: UInt64 = 1, maxSide: Int? = nil,
    supplied: Int = 0, isStarted: Bool = true, recordsSpans: Bool = false
  ) -> HelperDialogue {
    var account = HelperDialogue(limits: limits, recordsSpans: recordsSpans)
    account.supply(byteCount: supplied)
    let request = request(.readHeader(planning(renditions.count, maxSide: maxSide)))
    var isAccepted = account.accepts(plan(renditions, reserved: reserved), to: request, isCancelled: false)
    if isStarted {
      let started = response { $0.work.isStarted = true }
      isAccepted =
        isAccepted && account.accepts(started, to: Self.request(.start(renditionIDs: [])), isCancelled: false)
    }
    #expect(isAccepted)
    account.begin()
    return account
  }

  /// Whether an account accepts responses to one request.
  static func accepts(
    _ account: HelperDialogue, _ responses: HelperResponse..., to request: HelperRequest.Work? = nil,
    isCancelled: Bool = false
  ) -> Bool {
    var account = account
    return responses.allSatisfy {
      account.accepts($0, to: request ?? Self.request(.advance), isCancelled: isCancelled)
    }
  }

  static func acceptsHeader(
    _ response: HelperResponse, _ planning: WorkRequest.Planning = planning(), byteCount: Int = 0, isLast: Bool = false
  ) -> Bool {
    accepts(
      HelperDialogue(limits: limits, recordsSpans: false), response,
      to: request(.readHeader(planning), byteCount, isLast: isLast))
  }
}
