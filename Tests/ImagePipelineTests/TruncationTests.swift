import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Truncated files")
struct TruncationTests {
  private static let names = [
    "photo-420.jpg", "photo-444.jpg", "photo-gray.jpg", "photo-cmyk.jpg", "photo-restart.jpg", "photo.png",
    "photo.webp",
    "lossless.webp",
  ]
  private static let warning = "the file is truncated; the missing part of the image is gray"
  private static let tolerant = ProcessingConfiguration(preferredFormat: .png, tolerateTruncation: true)

  private static func cut(_ name: String, _ percent: Int) -> [UInt8] {
    let bytes = Fixture.bytes(name)
    return Array(bytes.prefix(bytes.count * percent / 100))
  }

  @Test("are an error by default", arguments: names + ["photo-progressive.jpg"])
  func refused(name: String) {
    let error = #expect(throws: PipelineError.self) { try process(Self.cut(name, 60), ProcessingConfiguration()) }
    #expect(error?.code == .truncatedImage)
  }

  @Test("return the received rows, gray for the rest, and a warning if truncation is tolerated", arguments: names)
  func rowsThatCame(name: String) throws {
    let whole = try Pixels.decode(try process(Fixture.bytes(name), Self.tolerant).bytes)
    let result = try process(Self.cut(name, 75), Self.tolerant)
    #expect(result.report.messages.last == Self.warning)
    let part = try Pixels.decode(result.bytes)
    #expect(part.layout == whole.layout)
    let (width, height) = (part.layout[0].width, part.layout[0].height)
    for x in stride(from: 0, to: width, by: 7) {
      #expect(part.color(x: x, y: height / 5) == whole.color(x: x, y: height / 5))
      for channel in part.color(x: x, y: height - 1) { #expect(abs(channel - 128) <= 2) }
    }
    for windowByteCount in [7, 4096] {
      #expect(try process(Self.cut(name, 75), Self.tolerant, windowByteCount: windowByteCount).bytes == result.bytes)
    }
  }

  @Test("become results of every format", arguments: names, [OutputFormat.jpeg, .webp, .gif])
  func formats(name: String, format: OutputFormat) throws {
    // Rows that are missing are one row in memory, of which not all encoders take several.
    for percent in [40, 75] {
      let configuration = ProcessingConfiguration(preferredFormat: format, tolerateTruncation: true)
      let result = try process(Self.cut(name, percent), configuration)
      #expect(result.report.messages.last == Self.warning)
      let pixels = try Pixels.decode(result.bytes, returnsRGB: true)
      let height = pixels.layout[0].height
      for channel in pixels.color(x: 3, y: height - 1) { #expect(abs(channel - 128) <= 8, "\(percent)") }
    }
  }

  @Test("are returned with the refinements received if they are progressive")
  func progressive() throws {
    let whole = try Pixels.decode(try process(Fixture.bytes("photo-progressive.jpg"), Self.tolerant).bytes)
    let result = try process(Self.cut("photo-progressive.jpg", 60), Self.tolerant)
    #expect(result.report.messages.last == Self.warning)
    for (ours, theirs) in zip(try Pixels.decode(result.bytes).mean, whole.mean) { #expect(abs(ours - theirs) < 6) }
  }

  @Test("are an error if no row arrived, or if all rows are needed first", arguments: [false, true])
  func nothingToGive(isTolerant: Bool) {
    let configuration = ProcessingConfiguration(tolerateTruncation: isTolerant)
    for (name, percent) in [
      ("photo-420.jpg", 8), ("photo.png", 1), ("pngsuite-basi2c08.png", 80), ("orientation-6.webp", 80),
    ] {
      let error = #expect(throws: PipelineError.self) { try process(Self.cut(name, percent), configuration) }
      #expect(error?.code == .truncatedImage, "\(name)")
    }
  }

  @Test("an intact file is unaffected by the flag", arguments: names + ["photo-progressive.jpg"])
  func wholeFiles(name: String) throws {
    let strict = ProcessingConfiguration(preferredFormat: .png, alwaysEncode: true)
    let (ours, theirs) = (
      try process(Fixture.bytes(name), Self.tolerant), try process(Fixture.bytes(name), strict)
    )
    #expect(ours.bytes == theirs.bytes && ours.report.messages == theirs.report.messages)
  }
}
