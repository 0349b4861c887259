import ImagePipeline
import Testing

@testable import WorkerService

@Suite("Dialogue with a helper")
struct HelperDialogueTests {
  /// Returns whether a response to the last 100 bytes of an image is accepted, and further ones to requests without
  /// bytes.
  private static func accepts(_ responses: HelperResponse...) -> Bool {
    let info = ImageInfo(
      format: "jpeg", size: PixelSize(width: 8, height: 8), orientation: 1, hasAlpha: false, bitDepth: 8,
      colorSpace: "sRGB", frameCount: 1)
    let result = PlannedResult(input: info, output: info, decodedByteCount: 1, warnings: [])
    var (planned, started) = (HelperResponse(), HelperResponse())
    planned.work.plan = PlannedImage(renditions: [.success(result)], workingSetByteCount: 1, reservedByteCount: 2)
    started.work.isStarted = true
    func request(_ request: WorkRequest, _ input: Range<Int>, isLast: Bool) -> HelperRequest.Work {
      HelperRequest.Work(request: request, input: input, isLast: isLast)
    }
    var dialogue = [
      (request(.readHeader(Isolated.planning), 0..<0, isLast: false), planned),
      (request(.start(renditionIDs: []), 0..<0, isLast: false), started),
    ]
    for (index, response) in responses.enumerated() {
      dialogue.append((request(.advance, index == 0 ? 0..<100 : 0..<0, isLast: true), response))
    }
    var account = HelperDialogue(limits: ImageLimits(), recordsSpans: false)
    return dialogue.allSatisfy { request, response in
      account.begin()
      return account.accepts(response, to: request, isCancelled: false)
    }
  }

  private static func response(
    consuming byteCount: Int, output: Int = 0, isPaused: Bool = false, isEnd: Bool = false
  ) -> HelperResponse {
    var response = HelperResponse()
    response.work.consumedByteCount = byteCount
    if output > 0 { response.segments = [HelperResponse.Segment(rendition: 0, byteCount: output)] }
    response.work.isPaused = isPaused
    if isEnd { response.work.ends = [(0, .failure(PipelineError(.corruptImage, "")))] }
    return response
  }

  @Test("the last bytes of an image are consumed only with the end of its results, or with output that comes first")
  func end() {
    #expect(Self.accepts(Self.response(consuming: 99)))
    #expect(Self.accepts(Self.response(consuming: 100, isEnd: true)))
    #expect(!Self.accepts(Self.response(consuming: 100)))
    #expect(!Self.accepts(Self.response(consuming: 100, output: 10)))
    let paused = Self.response(consuming: 100, output: 10, isPaused: true)
    #expect(Self.accepts(paused, Self.response(consuming: 0, isEnd: true)))
    #expect(!Self.accepts(paused, Self.response(consuming: 0, output: 10)))
  }

  @Test("work pauses only for output")
  func pause() {
    #expect(Self.accepts(Self.response(consuming: 50, output: 1, isPaused: true)))
    #expect(!Self.accepts(Self.response(consuming: 50, isPaused: true)))
  }
}
