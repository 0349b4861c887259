import ImagePipeline
import TestSupport
import Testing

@Suite("Side limits")
struct SideLimitTests {
  /// Returns a run-length coded bitmap without any runs.
  private static func bitmap(height: Int) -> [UInt8] {
    let info = [40, 0, 0, 0, 1, 0, 0, 0] + Container.littleEndian(height, byteCount: 4) + [1, 0, 8, 0, 1, 0, 0, 0]
    return Array("BM".utf8) + [UInt8](repeating: 0, count: 8) + [62, 0, 0, 0] + info
      + [UInt8](repeating: 0, count: 12) + [2, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 0, 1, 2, 3, 0, 0, 1]
  }

  @Test("a side too long for the resampler is refused, naming the limit")
  func longSide() {
    let configuration = ProcessingConfiguration(maxWidth: 100, maxHeight: 100, preferredFormat: .png)
    let error = #expect(throws: PipelineError.self) { try process(Self.bitmap(height: 400_000_000), configuration) }
    #expect(error?.code == .limitExceeded)
    #expect(error?.limit == PipelineError.Limit(name: "max_side", limit: 1 << 26, value: 400_000_000))
  }
}
