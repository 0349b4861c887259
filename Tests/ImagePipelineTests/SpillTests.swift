import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Coefficients in a file")
struct SpillTests {
  /// 11 megapixels: 34 MiB of coefficients and 2 of marks.
  private static func progressive() throws -> [UInt8] {
    let configuration = ProcessingConfiguration(
      maxWidth: 4096, compressionQuality: 0.6, preferredFormat: .jpeg, allowUpscale: true,
      jpeg: JPEGOptions(isProgressive: true))
    return try process(Fixture.bytes("photo-420.jpg"), configuration).bytes
  }

  @Test("give the picture that those in memory give, in the memory that was planned")
  func sameAsHeld() throws {
    let bytes = try Self.progressive()
    let configuration = ProcessingConfiguration(
      maxWidth: 2000, compressionQuality: 1, preferredFormat: .png, alwaysEncode: true)
    func run(_ spill: SpillDirectory?) throws -> (bytes: [UInt8], peak: UInt64) {
      let limits = PictureLimits(spill: spill)
      var reader = PictureReader(limits: limits)
      #expect(try reader.push(bytes.span.bytes, isLast: true).isComplete)
      let estimate = try reader.plan(configuration).workingSetByteCount
      let result = try process(bytes, configuration, windowByteCount: 100_000, limits: limits)
      #expect(result.report.peakMemoryByteCount <= estimate)
      return (result.bytes, result.report.peakMemoryByteCount)
    }
    let (held, spilled) = (try run(nil), try run(.system))
    #expect(held.bytes == spilled.bytes)
    #expect(held.peak > 34 << 20)
    // What is held before blocks go to a file, its window, and what the other stages need.
    #expect(spilled.peak < 24 << 20)
  }
}
