import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Formats whose encoders need too much memory", .enabled(if: ImageFormat.avif.isEncodable))
struct FormatFallbackTests {
  /// Returns limits with less memory than AVIF encoding needs, but enough for decoding.
  private static func tight(_ name: String) throws -> ImageLimits {
    func byteCount(_ format: OutputFormat) throws -> UInt64 {
      try plan(name, ProcessingConfiguration(preferredFormat: format), ImageLimits()).workingSetByteCount
    }
    let (avif, png) = (try byteCount(.avif), try byteCount(.png))
    #expect(png < avif)
    return ImageLimits(memory: Int(avif) - 1)
  }

  private static func plan(
    _ name: String, _ configuration: ProcessingConfiguration, _ limits: ImageLimits
  ) throws -> Plan {
    var reader = ImageReader(limits: limits)
    _ = try reader.push(Fixture.bytes(name).span.bytes, isLast: true)
    return try reader.plan(configuration)
  }

  @Test(
    "become JPEG, or PNG with alpha, and a warning says so", arguments: [("photo.avif", "jpeg"), ("alpha.avif", "png")])
  func fallback(name: String, format: String) throws {
    let limits = try Self.tight(name)
    for configuration in [ProcessingConfiguration(), ProcessingConfiguration(preferredFormat: .original)] {
      let (bytes, report) = try process(Fixture.bytes(name), configuration, limits: limits)
      #expect(report.output.format == format && ImageFormat.sniff(bytes.span.bytes)?.rawValue == format)
      #expect(report.messages.contains { $0.hasPrefix("the result is \(format) instead of avif") })
    }
    let (_, whole) = try process(Fixture.bytes(name), ProcessingConfiguration())
    #expect(whole.output.format == "avif" && whole.messages.isEmpty)
  }

  @Test("are refused if requested explicitly")
  func asked() throws {
    let limits = try Self.tight("photo.avif")
    let error = #expect(throws: PipelineError.self) {
      try process(Fixture.bytes("photo.avif"), ProcessingConfiguration(preferredFormat: .avif), limits: limits)
    }
    #expect(error?.code == .limitExceeded)
  }
}
