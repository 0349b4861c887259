import Fields
import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Byte limits")
struct ByteLimitTests {
  private static let fixtures = ["photo-420.jpg", "photo-odd.jpg", "photo.png", "alpha.png", "orientation-6.jpg"]
  private static let formats: [OutputFormat] =
    [.jpeg, .webp] + (ImageFormat.avif.isEncodable ? [.avif] : []) + (ImageFormat.jxl.isEncodable ? [.jxl] : [])

  private func run(
    _ name: String, _ format: OutputFormat, quality: Double = 1, limit: UInt64? = nil, allowsSmaller: Bool? = nil
  ) throws -> (bytes: [UInt8], report: ProcessingReport) {
    try process(
      Fixture.bytes(name),
      ProcessingConfiguration(
        compressionQuality: quality, preferredFormat: format, maxBytes: limit, alwaysEncode: true,
        allowSmallerDimensions: allowsSmaller))
  }

  /// Returns the quality above which a limit also changes a JPEG's chroma planes.
  private static func quality(_ format: OutputFormat) -> Double { format == .jpeg ? 0.89 : 1 }

  @Test("the result fits the limit at about the highest possible quality", arguments: fixtures, formats)
  func quality(name: String, format: OutputFormat) throws {
    let asked = Self.quality(format)
    let best = try run(name, format, quality: asked)
    let minimum = try run(name, format, quality: 0.01)
    let (maximum, fewest) = (Double(best.bytes.count), Double(minimum.bytes.count))
    for share in [0.02, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.99] where fewest < maximum {
      let limit = UInt64(fewest + (maximum - fewest) * share)
      let result = try run(name, format, quality: asked, limit: limit)
      #expect(result.bytes.count <= limit && result.bytes.count == Int(result.report.outputByteCount))
      #expect(result.report.output.size == best.report.output.size && result.report.messages.isEmpty)
      #expect(try Pixels.decode(result.bytes).layout[0].width == best.report.output.size.width)
      // Without the limit, the reported quality gives the same file, or for a JPEG, the qualities around it give a smaller
      // and a larger one. A slightly higher quality gives a file that is too large.
      let quality = try #require(result.report.compressionQuality)
      #expect(quality < asked)
      if format == .jpeg {
        let lower = try run(name, format, quality: max(1, (quality * 100).rounded(.down)) / 100)
        let higher = try run(name, format, quality: (quality * 100).rounded(.up) / 100)
        // The sizes of small images do not rise everywhere.
        let counts = [lower, result, higher].map { Double($0.bytes.count) }
        #expect(counts[0] <= counts[1] * 1.03 && counts[1] <= counts[2] * 1.03, "\(share): \(counts) at \(quality)")
      } else {
        #expect(try run(name, format, quality: quality).bytes == result.bytes)
      }
      let minimum = format == .jpeg ? 0.97 : 0.95
      let isNear = Double(result.bytes.count) >= Double(limit) * minimum || limit < result.bytes.count + 16
      // Each step of AVIF's quantizer is 0.015 of quality. Nor does each step of JPEG XL make a small file smaller.
      let next = min(asked, quality + (format == .jxl ? 0.1 : format == .avif ? 0.05 : 0.031))
      #expect(
        try isNear || run(name, format, quality: next).bytes.count > limit,
        "\(share): \(result.bytes.count) of \(limit) at \(quality)")
    }
  }

  @Test("a JPEG uses nearly all of its limit at high qualities too, where whole qualities are far apart")
  func fine() throws {
    let noise = try encodedImage(noiseSamples(640 * 480 * 3), width: 640, height: 480, pixelFormat: .rgb8)
    for image in [Fixture.bytes("photo-odd.jpg"), noise] {
      func run(_ quality: Double, limit: UInt64? = nil) throws -> (bytes: [UInt8], report: ProcessingReport) {
        try process(
          image,
          ProcessingConfiguration(
            compressionQuality: quality, preferredFormat: .jpeg, maxBytes: limit, alwaysEncode: true))
      }
      for (low, high) in [(0.93, 0.94), (0.97, 0.98), (0.98, 0.99), (0.99, 1)] {
        let sizes = try [low, high].map { Double(try run($0).bytes.count) }
        let limit = UInt64(sizes[0] * 0.1 + sizes[1] * 0.9)
        let result = try run(1, limit: limit)
        #expect(
          result.bytes.count <= limit && Double(result.bytes.count) >= Double(limit) * 0.95,
          "\(high): \(result.bytes.count) of \(limit)")
        let quality = try #require(result.report.compressionQuality)
        #expect((low..<high).contains(quality))
      }
    }
  }

  @Test("a rotated result fits the limit, upright", arguments: formats, [nil, true])
  func rotation(format: OutputFormat, allowsSmaller: Bool?) throws {
    func run(_ limit: UInt64?) throws -> (bytes: [UInt8], report: ProcessingReport) {
      try process(
        Fixture.bytes("photo-420.jpg"),
        ProcessingConfiguration(
          preferredFormat: format, rotation: 90, maxBytes: limit, alwaysEncode: true,
          allowSmallerDimensions: allowsSmaller))
    }
    let whole = try run(nil)
    #expect(whole.report.output.size == PixelSize(width: 160, height: 240))
    let limit = UInt64(allowsSmaller == true ? 1200 : whole.bytes.count / 2)
    let limited = try run(limit)
    let (size, pixels) = (limited.report.output.size, try Pixels.decode(limited.bytes))
    #expect(limited.bytes.count <= limit)
    #expect(pixels.layout[0].width == size.width && pixels.layout[0].height == size.height)
    #expect(
      abs(Double(size.height) / Double(size.width) - 1.5) < 0.05 && (size.width == 160) != (allowsSmaller == true))
    for (one, other) in zip(pixels.mean, try Pixels.decode(whole.bytes).mean) { #expect(abs(one - other) < 6) }
  }

  @Test("chroma planes are subsampled when the quality falls below the threshold")
  func chroma() throws {
    for name in ["photo-420.jpg", "photo-odd.jpg", "photo.png"] {
      let minimum = try run(name, .jpeg, quality: 0.5)
      let limited = try run(name, .jpeg, limit: UInt64(minimum.bytes.count * 11 / 10))
      let (ours, theirs) = (try Pixels.decode(limited.bytes), try Pixels.decode(minimum.bytes))
      #expect(ours.layout == theirs.layout)
      #expect(try #require(limited.report.compressionQuality) >= 0.45)
      for (a, b) in zip(ours.mean, theirs.mean) { #expect(abs(a - b) < 2, "\(name)") }
      let full = try process(
        Fixture.bytes(name),
        ProcessingConfiguration(
          preferredFormat: .jpeg, maxBytes: UInt64(minimum.bytes.count), alwaysEncode: true,
          jpeg: JPEGOptions(chromaSubsampling: .full)))
      #expect(try Pixels.decode(full.bytes).layout[1].horizontalScale == 1)
    }
  }

  @Test("a limit that the result already fits changes nothing", arguments: fixtures, [OutputFormat.jpeg, .png, .webp])
  func noEffect(name: String, format: OutputFormat) throws {
    let plain = try run(name, format, quality: 0.8)
    for limit in [UInt64(plain.bytes.count), 1_000_000, .max] {
      let limited = try run(name, format, quality: 0.8, limit: limit)
      #expect(limited.bytes == plain.bytes && limited.report.compressionQuality == plain.report.compressionQuality)
    }
  }

  /// The sizes of a JPEG XL do not rise everywhere at the lowest qualities.
  @Test(
    "an impossible limit is refused, naming the minimum size reached", arguments: formats.filter { $0 != .jxl })
  func unreachable(format: OutputFormat) throws {
    for name in Self.fixtures {
      let minimum = try run(name, format, quality: 0.01).bytes.count
      let error = #expect(throws: PipelineError.self) {
        try run(name, format, quality: Self.quality(format), limit: UInt64(minimum - 1))
      }
      #expect(error?.code == .limitExceeded && error?.field == "max_bytes")
      #expect(
        error?.limit == PipelineError.Limit(name: "max_bytes", limit: UInt64(minimum - 1), value: UInt64(minimum)))
      #expect(error?.message.contains("\(minimum) bytes") == true)
    }
  }

  @Test("PNG and lossless WebP either fit a limit or fail", arguments: fixtures)
  func lossless(name: String) throws {
    let webp = WebPOptions(isLossless: true)
    for format in [OutputFormat.png, .webp] {
      func run(_ limit: UInt64?) throws -> [UInt8] {
        try process(
          Fixture.bytes(name),
          ProcessingConfiguration(preferredFormat: format, maxBytes: limit, alwaysEncode: true, webp: webp)
        ).bytes
      }
      let plain = try run(nil)
      #expect(try run(UInt64(plain.count)) == plain)
      let error = #expect(throws: PipelineError.self) { try run(UInt64(plain.count - 1)) }
      #expect(error?.limit?.value == UInt64(plain.count) && error?.limit?.name == "max_bytes")
    }
  }

  @Test(
    "the dimensions are reduced if allowed, and no more than needed", arguments: fixtures,
    [OutputFormat.jpeg, .png, .webp])
  func smaller(name: String, format: OutputFormat) throws {
    let plain = try run(name, format)
    let size = plain.report.output.size
    let floor = try run(name, format, quality: 0.4).bytes.count
    // Bytes that every file of the format takes, whatever the image's size.
    let header = format == .jpeg ? 700.0 : 100
    for share in [0.9, 0.5, 0.3] where Double(floor) * share > header {
      let limit = UInt64(Double(floor) * share)
      let result = try run(name, format, limit: limit, allowsSmaller: true)
      #expect(result.bytes.count <= limit && Double(result.bytes.count) > Double(limit) * 0.6, "\(share)")
      let made = result.report.output.size
      #expect(made.width < size.width && made.height < size.height)
      let aspect = Double(size.width) / Double(size.height)
      #expect(abs(Double(made.width) - Double(made.height) * aspect) <= aspect + 1)
      #expect(result.report.messages.contains { $0.contains("\(made)") })
      let pixels = try Pixels.decode(result.bytes)
      #expect(pixels.layout[0].width == made.width && pixels.layout[0].height == made.height)
      for (ours, theirs) in zip(pixels.mean, try Pixels.decode(plain.bytes).mean) { #expect(abs(ours - theirs) < 6) }
      // Quality is reduced first: above the size at minimum quality, the dimensions stay unchanged.
      if format != .png {
        #expect(try run(name, format, limit: UInt64(floor), allowsSmaller: true).report.output.size == size)
      }
    }
  }

  @Test("the result is the same however the upload is split")
  func cuts() throws {
    let configuration = ProcessingConfiguration(preferredFormat: .jpeg, maxBytes: 5000, alwaysEncode: true)
    let whole = try process(Fixture.bytes("photo-420.jpg"), configuration).bytes
    for windowByteCount in [1, 4096] {
      #expect(
        try process(Fixture.bytes("photo-420.jpg"), configuration, windowByteCount: windowByteCount).bytes == whole)
    }
  }

  @Test("widget fits its limit, flattens, and bounds only the width")
  func widget() throws {
    let widget = try PresetCatalog().configuration(
      named: "widget"
    ).overridden(by: ProcessingConfiguration(allowUpscale: true))
    var unlimited = widget
    unlimited.maxBytes = nil
    for name in Self.fixtures {
      let result = try process(Fixture.bytes(name), widget)
      #expect(result.report.output.size.width == 1024 && !result.report.output.hasAlpha)
      #expect(try result.bytes == process(Fixture.bytes(name), unlimited).bytes && result.bytes.count <= 1_000_000)
    }
    let noise = try encodedImage(noiseSamples(1500 * 1600 * 3), width: 1500, height: 1600, pixelFormat: .rgb8)
    let result = try process(noise, try PresetCatalog().configuration(named: "widget"))
    #expect(try process(noise, unlimited).bytes.count > 300_000)
    #expect(result.bytes.count <= 1_000_000 && result.report.output.size.width == 1024)
  }
}
