import TestSupport
import Testing

@testable import ImagePipeline

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

  /// Returns the limit that an image or its result of this width exceeds.
  private static func limit(stored: Int, scaled: Int, filters: [Filter] = []) throws -> String? {
    let framing = try Framing(
      shown: PixelSize(width: scaled, height: 1), configuration: ProcessingConfiguration(filters: filters))
    let chain = FilterChain(try Filter.resolve(filters))
    do throws(PipelineError) {
      try Plan.checkSides(stored: PixelSize(width: stored, height: 1), framing: framing, filters: chain)
      return nil
    } catch { return error.limit?.name }
  }

  @Test("the sides of the image and of the result are limited, and of a filtered result further")
  func everySide() throws {
    let (side, filteredSide) = (1 << 26, 1 << 20)
    let blur = Filter(name: "blur", intensity: 1, parameters: ["radius": 4])
    #expect(try Self.limit(stored: side, scaled: side) == nil)
    #expect(try Self.limit(stored: side + 1, scaled: 1) == "max_side")
    #expect(try Self.limit(stored: 1, scaled: side + 1) == "max_side")
    #expect(try Self.limit(stored: side, scaled: filteredSide, filters: [blur]) == nil)
    #expect(try Self.limit(stored: side, scaled: filteredSide + 1, filters: [blur]) == "max_filtered_side")
    #expect(try Self.limit(stored: side, scaled: filteredSide + 1) == nil)
  }
}
