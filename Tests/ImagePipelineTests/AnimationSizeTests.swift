import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Sizes of animations")
struct AnimationSizeTests {
  /// Noise of eight colors, smoothed, so that quality and colors matter.
  private static let smooth = try! process(
    noise(frameCount: 6),
    ProcessingConfiguration(
      preferredFormat: .png, filters: [Filter(name: "blur", intensity: 1, parameters: ["radius": 2])], maxFrames: 0)
  ).bytes

  private static func noise(frameCount: Int) -> [UInt8] {
    var generator = SeededGenerator(seed: 5)
    let frames = (0..<frameCount).map { _ in
      GIFFrame(width: 64, height: 48, indices: (0..<64 * 48).map { _ in UInt8.random(in: 0...7, using: &generator) })
    }
    return GIFAnimation(width: 64, height: 48, frames: frames, repeatCount: 2).bytes
  }

  private static func configuration(_ format: OutputFormat, maxBytes: Int? = nil) -> ProcessingConfiguration {
    ProcessingConfiguration(
      compressionQuality: 0.95, preferredFormat: format, maxBytes: maxBytes.map(UInt64.init), alwaysEncode: true,
      maxFrames: 0)
  }

  @Test("max_bytes holds, with all frames", arguments: [OutputFormat.webp, .gif], [80, 50, 30])
  func limit(format: OutputFormat, percent: Int) throws {
    let whole = try process(Self.smooth, Self.configuration(format))
    let limit = whole.bytes.count * percent / 100
    let (bytes, report) = try process(
      Self.smooth, Self.configuration(format, maxBytes: limit), windowByteCount: 1000)
    #expect(bytes.count <= limit && report.outputByteCount == UInt64(bytes.count))
    #expect(bytes.count > limit / 3, "most of the limit is used")
    #expect(report.output.frameCount == 6 && report.compressionQuality ?? 0 < 0.95)
    let (before, after) = (try Pixels.decode(whole.bytes, frames: (0, 0)), try Pixels.decode(bytes, frames: (0, 0)))
    #expect(before.frames.map(\.nanoseconds) == after.frames.map(\.nanoseconds))
    #expect(after.frames.allSatisfy { $0.playCount == 3 })
    for (ours, theirs) in zip(after.mean, before.mean) { #expect(abs(ours - theirs) < 12) }
  }

  /// A result of frames that each move, with a limit at a percentage of its size where quality alone does not suffice.
  private func thinned(_ format: OutputFormat, percent: Int) throws -> (before: Pixels, after: Pixels, limit: Int) {
    let image = Self.noise(frameCount: 24)
    let smallest = try #require(
      #expect(throws: PipelineError.self) { try process(image, Self.configuration(format, maxBytes: 300)) }?.limit)
    let limit = Int(smallest.value) * percent / 100
    var configuration = Self.configuration(format, maxBytes: limit)
    #expect(throws: PipelineError.self) { try process(image, configuration) }
    configuration.allowLowerFrameRate = true
    let whole = try Pixels.decode(try process(image, Self.configuration(format)).bytes, frames: (0, 0))
    let (bytes, report) = try process(image, configuration, windowByteCount: 1000)
    #expect(bytes.count <= limit)
    let pixels = try Pixels.decode(bytes, frames: (0, 0))
    #expect(report.output.frameCount == pixels.frames.count)
    return (whole, pixels, limit)
  }

  @Test(
    "frames are left out where quality does not suffice, and the timing stays",
    arguments: [OutputFormat.webp, .gif, .png], [80, 40, 20])
  func lowerFrameRate(format: OutputFormat, percent: Int) throws {
    let (before, after, _) = try thinned(format, percent: percent)
    #expect(after.frames.count < before.frames.count && after.frames.count >= 3)
    let total = { (pixels: Pixels) in pixels.frames.reduce(0) { $0 + $1.nanoseconds } }
    #expect(total(before) == total(after))
    // Each frame begins when it began before.
    let begins = { (pixels: Pixels) in
      pixels.frames.reduce(into: [0 as UInt64]) { $0.append($0.last! + $1.nanoseconds) }
    }
    #expect(Set(begins(before)).isSuperset(of: begins(after)))
    if format == .png { #expect(after.frameBytes.allSatisfy { before.frameBytes.contains($0) }) }
  }

  @Test("all frames stay where quality suffices, or without a limit", arguments: [OutputFormat.webp, .gif])
  func sufficientQuality(format: OutputFormat) throws {
    let size = try process(Self.smooth, Self.configuration(format)).bytes.count
    for limit in [size * 9 / 10, nil] {
      var configuration = Self.configuration(format, maxBytes: limit)
      let expected = try process(Self.smooth, configuration).bytes
      configuration.allowLowerFrameRate = true
      #expect(try process(Self.smooth, configuration).bytes == expected)
    }
  }

  @Test("frames of at most 10 ms are not left out, as viewers show them for longer")
  func shortFrames() throws {
    func image(delay: Int) -> [UInt8] {
      var generator = SeededGenerator(seed: 6)
      let frames = (0..<12).map { _ in
        var frame = GIFFrame(
          width: 64, height: 48, indices: (0..<64 * 48).map { _ in UInt8.random(in: 0...7, using: &generator) })
        frame.delay = delay
        return frame
      }
      return GIFAnimation(width: 64, height: 48, frames: frames).bytes
    }
    let size = try process(image(delay: 1), Self.configuration(.png)).bytes.count
    var configuration = Self.configuration(.png, maxBytes: size / 2 + size / 10)
    configuration.allowLowerFrameRate = true
    #expect(throws: PipelineError.self) { try process(image(delay: 1), configuration) }
    #expect(try process(image(delay: 2), configuration).report.output.frameCount == 6)
  }

  @Test("a limit that holds from the start changes nothing", arguments: [OutputFormat.webp, .gif, .png])
  func loose(format: OutputFormat) throws {
    let whole = try process(Self.smooth, Self.configuration(format))
    let (bytes, report) = try process(Self.smooth, Self.configuration(format, maxBytes: whole.bytes.count))
    #expect(bytes == whole.bytes && report.compressionQuality == whole.report.compressionQuality)
  }

  @Test("a limit out of reach is named with the smallest size", arguments: [OutputFormat.webp, .gif, .png])
  func unreachable(format: OutputFormat) throws {
    let error = #expect(throws: PipelineError.self) {
      _ = try process(Self.smooth, Self.configuration(format, maxBytes: 300))
    }
    #expect(error?.code == .limitExceeded && error?.limit?.name == "max_bytes" && error?.limit?.value ?? 0 > 300)
  }

  @Test("the search stays within the planned memory", arguments: [OutputFormat.webp, .gif], [true, false])
  func memory(format: OutputFormat, spills: Bool) throws {
    var limits = ImageLimits()
    if !spills { limits.spill = nil }
    let size = try process(Self.smooth, Self.configuration(format)).bytes.count
    var configuration = Self.configuration(format, maxBytes: size / 2)
    (configuration.neverLarger, configuration.allowLowerFrameRate) = (true, true)
    var reader = ImageReader(limits: limits)
    _ = try reader.push(Self.smooth.span.bytes, isLast: true)
    let plan = try reader.plan(configuration)
    let (_, report) = try process(Self.smooth, configuration, limits: limits)
    #expect(report.peakMemoryByteCount <= plan.workingSetByteCount)
  }

  @Test("never_larger holds for results of the image's format", arguments: [OutputFormat.webp, .gif])
  func neverLarger(format: OutputFormat) throws {
    let size = try process(Self.smooth, Self.configuration(format)).bytes.count
    let small = try process(Self.smooth, Self.configuration(format, maxBytes: size * 4 / 5)).bytes
    var configuration = Self.configuration(format)
    // A GIF is not larger when it is coded again, but resizing mixes its colors.
    if format == .gif { configuration.maxWidth = 62 }
    let larger = try process(small, configuration)
    configuration.neverLarger = true
    let (bytes, report) = try process(small, configuration)
    #expect(larger.bytes.count > small.count && bytes.count <= small.count)
    #expect(report.output.frameCount == 6)
    #expect(report.warnings.contains { $0.code == .qualityReduced } == (format == .webp))
  }
}
