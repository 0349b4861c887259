import ImagePipeline
import Testing

@testable import WorkerService

@Suite("WorkResults")
struct WorkResultsTests {
  private static let info = ImageInfo(
    format: "jpeg", size: PixelSize(width: 8, height: 8), orientation: 1, hasAlpha: false, bitDepth: 8,
    colorSpace: "sRGB", frameCount: 1)

  private static func failure(_ message: String) -> Result<ProcessingReport, PipelineError> {
    .failure(PipelineError(.corruptImage, message))
  }

  private static func message(_ outcome: Result<ProcessingReport, PipelineError>?) -> String? {
    guard case .failure(let error) = outcome else { return nil }
    return error.message
  }

  @Test("each rendition has one outcome, the first, which is returned once")
  func outcomes() {
    var results = WorkResults()
    let planned = PlannedResult(input: Self.info, output: Self.info, decodedByteCount: 1, warnings: [])
    results.expect(
      PlannedImage(
        renditions: [.success(planned), .failure(PipelineError(.invalidField, "planned"))], workingSetByteCount: 1,
        reservedByteCount: 1))
    #expect(!results.areComplete && results.takeEnd(of: 0) == nil)
    for (index, message) in [(0, "first"), (0, "second"), (1, "late"), (7, "")] {
      results.note([(index, Self.failure(message))])
    }
    #expect(results.areComplete && !results.areTaken)
    #expect(Self.message(results.takeEnd(of: 0)) == "first" && results.takeEnd(of: 0) == nil)
    #expect(!results.areTaken)
    #expect(Self.message(results.takeEnd(of: 1)) == "planned" && results.takeEnd(of: 1) == nil)
    #expect(results.areTaken)
  }

  @Test("output is returned once, by rendition")
  func output() {
    var results = WorkResults()
    let bytes: [UInt8] = [1, 2, 3]
    results.append(bytes.span.bytes, to: 1)
    #expect(results.takeOutput(of: 0).isEmpty && results.takeOutput(of: 1).flatMap { [UInt8]($0) } == bytes)
    #expect(results.takeOutput(of: 1).isEmpty)
  }
}
