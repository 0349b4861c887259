import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Large progressive images")
struct SpillTests {
  /// 11 megapixels, whose coefficients take 34 MiB.
  private static let image: Result<[UInt8], PipelineError> = Result { () throws(PipelineError) in
    let configuration = ProcessingConfiguration(
      maxWidth: 4096, compressionQuality: 0.6, preferredFormat: .jpeg, allowUpscale: true,
      jpeg: JPEGOptions(isProgressive: true))
    return try process(Fixture.bytes("photo-420.jpg"), configuration).bytes
  }

  private static let configuration = ProcessingConfiguration(
    maxWidth: 2000, compressionQuality: 1, preferredFormat: .png, alwaysEncode: true)

  /// Maximum memory in bytes of the other stages here.
  private static let stagesByteCount: UInt64 = 4 << 20

  private static func run(
    _ bytes: [UInt8], spill: SpillDirectory?, windowByteCount: Int
  ) throws -> (bytes: [UInt8], warnings: [String], peak: UInt64) {
    let limits = ImageLimits(spill: spill)
    var reader = ImageReader(limits: limits)
    let first = [UInt8](bytes.prefix(windowByteCount))
    #expect(try reader.push(first.span.bytes, isLast: windowByteCount >= bytes.count).isComplete)
    let estimate = try reader.plan(configuration).workingSetByteCount
    let result = try process(bytes, configuration, windowByteCount: windowByteCount, limits: limits)
    #expect(result.report.peakMemoryByteCount <= estimate)
    return (result.bytes, result.report.messages, result.report.peakMemoryByteCount)
  }

  @Test("buffer their bytes, not their coefficients")
  func memory() throws {
    let bytes = try Self.image.get()
    let whole = try Self.run(bytes, spill: .system, windowByteCount: .max)
    #expect(whole.peak < UInt64(bytes.count) + Self.stagesByteCount && bytes.count < 4 << 20)
    for spill in [nil, SpillDirectory.system] {
      let upload = try Self.run(bytes, spill: spill, windowByteCount: 100_000)
      #expect(upload.bytes == whole.bytes && upload.peak == whole.peak)
    }
  }

  @Test("spill to a file above 12 MiB")
  func inFile() throws {
    let bytes = try Self.image.get()
    // Useless bytes after the last unit of the last scan.
    let long = [UInt8](bytes.dropLast(2) + [UInt8](repeating: 0xAA, count: 24 << 20) + bytes.suffix(2))
    let plain = try Self.run(bytes, spill: .system, windowByteCount: .max)
    for windowByteCount in [100_000, .max] {
      let buffered = try Self.run(long, spill: nil, windowByteCount: windowByteCount)
      let spilled = try Self.run(long, spill: .system, windowByteCount: windowByteCount)
      #expect(buffered.bytes == plain.bytes && spilled.bytes == plain.bytes)
      #expect(buffered.warnings == spilled.warnings && buffered.warnings.count == 1)
      #expect(buffered.peak > 24 << 20)
      #expect(spilled.peak > 12 << 20 && spilled.peak < 12 << 20 + Self.stagesByteCount)
    }
  }
}
