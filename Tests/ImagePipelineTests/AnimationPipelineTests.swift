import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Animations in the pipeline")
struct AnimationPipelineTests {
  private static func animation(seed: UInt64 = 11, frameCount: Int = 5) -> GIFAnimation {
    var generator = SeededGenerator(seed: seed)
    return GIFAnimation.random(&generator, frameCount: frameCount)
  }

  /// Configurations that use every stage.
  private static let configurations = [
    ProcessingConfiguration(),
    ProcessingConfiguration(maxWidth: 13, rotation: 90),
    ProcessingConfiguration(maxWidth: 15),
    ProcessingConfiguration(maxWidth: 17, exactResize: true),
    ProcessingConfiguration(maxWidth: 17, resizeInLinearLight: true),
    ProcessingConfiguration(maxWidth: 60, maxHeight: 70, allowUpscale: true, pad: true, flipHorizontal: true),
    ProcessingConfiguration(
      maxWidth: 20, maxHeight: 10, resizeMode: .fill,
      filters: [
        Filter(name: "blur", intensity: 1, parameters: ["radius": 1]),
        Filter(name: "vignette", intensity: 1, parameters: [:]),
        Filter(name: "pixelate", intensity: 0.5, parameters: ["size": 3]),
      ]),
    ProcessingConfiguration(crop: Crop(unit: .fractions, x: 0.25, y: 0.25, width: 0.5, height: 0.5)),
  ]

  @Test("every frame looks as it does alone", arguments: configurations.indices, [1, 2, 3] as [UInt64])
  func framesAlone(index: Int, seed: UInt64) throws {
    let bytes = Self.animation(seed: seed).bytes
    var configuration = Self.configurations[index]
    configuration.preferredFormat = .png
    // The first frame alone needs no canvas, and so no alpha.
    let alone = try (1..<5).map { index in
      configuration.frameIndex = FrameIndex(index)
      let result = try process(bytes, configuration)
      #expect(result.report.output.frameCount == 1)
      return try Pixels.decode(result.bytes).planes[0]
    }
    (configuration.frameIndex, configuration.maxFrames) = (nil, 0)
    for windowByteCount in [Int.max, 100] {
      let (together, report) = try process(bytes, configuration, windowByteCount: windowByteCount)
      let pixels = try Pixels.decode(together, frames: (0, 0))
      #expect(pixels.frames.count == report.output.frameCount)
      // Equal frames may have become one.
      let shown = pixels.frameBytes
      #expect(alone.allSatisfy { shown.contains($0) })
      #expect(shown.dropFirst().allSatisfy { alone.contains($0) || $0 == shown[0] })
      #expect(report.input.frameCount == 5 && report.input.playCount == 4 && report.messages == [])
    }
  }

  @Test(
    "a result whose frames have rows in common, which stages leave out, is that of all rows",
    arguments: [OutputFormat.gif, .png, .webp])
  func commonRows(format: OutputFormat) throws {
    for seed in 1...12 as ClosedRange<UInt64> {
      let gif = Self.animation(seed: seed, frameCount: 8)
      let apng = try process(gif.bytes, ProcessingConfiguration(preferredFormat: .png, maxFrames: 0)).bytes
      for bytes in [gif.bytes, apng] {
        var configuration = ProcessingConfiguration(
          maxWidth: (gif.width + 1) / 2, preferredFormat: format, maxFrames: 0)
        let result = try process(bytes, configuration).bytes
        // Where the image may be truncated, no rows are left out.
        configuration.tolerateTruncation = true
        #expect(try process(bytes, configuration).bytes == result, "\(seed)")
      }
    }
  }

  @Test("a result has no more frames than max_frames, and a warning with their number")
  func fewerFrames() throws {
    let bytes = Self.animation().bytes
    for count in [1, 2, 4] {
      let configuration = ProcessingConfiguration(preferredFormat: .png, maxFrames: count)
      let (result, report) = try process(bytes, configuration)
      #expect(try Pixels.decode(result, frames: (0, 0)).frames.count <= count)
      #expect(report.warnings.first { $0.code == .framesDropped }?.parameters == ["frames": "1"])
    }
    let (apng, _) = try process(bytes, ProcessingConfiguration(preferredFormat: .png, maxFrames: 0))
    let stored = try Pixels.decode(apng, frames: (0, 0)).frames.count
    let (_, report) = try process(apng, ProcessingConfiguration(preferredFormat: .png))
    #expect(report.warnings.first { $0.code == .framesDropped }?.parameters == ["frames": "\(stored - 1)"])
  }

  @Test("an inspection counts the frames that a result lacks as its report does")
  func countedFrames() throws {
    let (apng, _) = try process(Self.animation().bytes, ProcessingConfiguration(preferredFormat: .png, maxFrames: 0))
    for (index, count) in [(0, 2), (1, 0), (2, 2), (-2, 1), (-1, 0)] {
      var configuration = ProcessingConfiguration(preferredFormat: .png, maxFrames: count)
      configuration.frameIndex = FrameIndex(index)
      var reader = ImageReader(limits: ImageLimits())
      reader.configurations = [configuration]
      #expect(try reader.push(apng.span.bytes, isLast: true).isComplete)
      let known = try reader.plan(configuration).knownWarnings.first { $0.code == .framesDropped }
      let (_, report) = try process(apng, configuration)
      #expect(known != nil && known == report.warnings.first { $0.code == .framesDropped }, "\(index), \(count)")
    }
  }

  @Test("the warning counts a frame of which a crop needs the first rows alone", arguments: [0, 2, -1])
  func croppedFrame(index: Int) throws {
    let (apng, _) = try process(Self.animation().bytes, ProcessingConfiguration(preferredFormat: .png, maxFrames: 0))
    let stored = try Pixels.decode(apng, frames: (0, 0)).frames.count
    var configuration = ProcessingConfiguration(preferredFormat: .png)
    configuration.crop = Crop(unit: .fractions, x: 0, y: 0, width: 1, height: 0.25)
    configuration.frameIndex = FrameIndex(index)
    let (_, report) = try process(apng, configuration)
    #expect(report.warnings.first { $0.code == .framesDropped }?.parameters == ["frames": "\(stored - 1)"])
  }

  @Test("a format that stores one frame gets the first one, with a warning", arguments: [OutputFormat.jpeg])
  func stillFormat(format: OutputFormat) throws {
    let bytes = Self.animation().bytes
    let still = try process(bytes, ProcessingConfiguration(preferredFormat: format))
    let asked = try process(bytes, ProcessingConfiguration(preferredFormat: format, maxFrames: 0))
    #expect(still.bytes == asked.bytes)
    #expect(asked.report.warnings.contains { $0.code == .framesDropped })
  }

  @Test(
    "a still image is the same with and without max_frames", arguments: ["photo.png", "photo-420.jpg", "alpha.webp"])
  func stillImage(name: String) throws {
    let bytes = Fixture.bytes(name)
    for format in [OutputFormat.png, .webp, .jpeg] {
      let one = try process(bytes, ProcessingConfiguration(preferredFormat: format))
      let all = try process(bytes, ProcessingConfiguration(preferredFormat: format, maxFrames: 0))
      #expect(one.bytes == all.bytes)
    }
  }

  @Test("a single frame of a GIF is a still image")
  func singleFrame() throws {
    let bytes = Self.animation(frameCount: 1).bytes
    let (result, report) = try process(bytes, ProcessingConfiguration(preferredFormat: .png, maxFrames: 0))
    #expect(!result.contains([UInt8]("acTL".utf8)) && report.output.frameCount == 1)
    #expect(report.output.duration == nil && report.output.playCount == nil)
  }

  private static let refusals: [(ProcessingConfiguration, String)] = [
    (
      ProcessingConfiguration(preferredFormat: .webp, maxBytes: 1000, allowSmallerDimensions: true),
      "allow_smaller_dimensions"
    ),
    (ProcessingConfiguration(preferredFormat: .webp, targetSimilarity: 80), "target_similarity"),
    (ProcessingConfiguration(preferredFormat: .png, png: PNGOptions(isInterlaced: true)), "png.interlaced"),
  ]

  @Test("fields that several frames do not have are refused", arguments: refusals.indices)
  func refused(index: Int) {
    var (configuration, field) = Self.refusals[index]
    configuration.maxFrames = 0
    let error = #expect(throws: PipelineError.self) { _ = try process(Self.animation().bytes, configuration) }
    #expect(error?.code == .unservedField && error?.field == field)
  }

  @Test(
    "a palette of an animated PNG serves all frames, and is exact if it has all colors",
    arguments: 1...6 as ClosedRange<UInt64>)
  func palette(seed: UInt64) throws {
    let bytes = Self.animation(seed: seed).bytes
    var configuration = ProcessingConfiguration(preferredFormat: .png, maxFrames: 0)
    let plain = try Pixels.decode(process(bytes, configuration).bytes, frames: (0, 0))
    for count in [256, 12] {
      configuration.png = PNGOptions(paletteColors: count)
      var reader = ImageReader(limits: ImageLimits())
      _ = try reader.push(bytes.span.bytes, isLast: true)
      let plan = try reader.plan(configuration)
      let (result, report) = try process(bytes, configuration)
      let found = try Pixels.decode(result, frames: (0, 0))
      #expect(report.peakMemoryByteCount <= plan.workingSetByteCount)
      #expect(report.output.frameCount == found.frames.count)
      #expect(found.frames.map(\.nanoseconds).reduce(0, +) == plain.frames.map(\.nanoseconds).reduce(0, +))
      let colors = Set(stride(from: 0, to: found.planes[0].count, by: 4).map { Array(found.planes[0][$0..<$0 + 4]) })
      #expect(colors.count <= count && result.contains([UInt8]("PLTE".utf8)))
      if count == 256 { #expect(found.planes == plain.planes && found.frames == plain.frames) }
    }
  }

  @Test("a frame that an image lacks is an invalid field", arguments: ["photo.png", "photo-420.jpg"])
  func missingFrame(name: String) {
    let error = #expect(throws: PipelineError.self) {
      _ = try process(Fixture.bytes(name), ProcessingConfiguration(frameIndex: FrameIndex(1)))
    }
    #expect(error?.code == .invalidField && error?.field == "frame_index")
  }

  @Test("renditions must select the same frames")
  func renditions() throws {
    let bytes = Self.animation().bytes
    let animated = ProcessingConfiguration(preferredFormat: .png, maxFrames: 0)
    let error = #expect(throws: PipelineError.self) {
      _ = try process(bytes, [animated, ProcessingConfiguration(preferredFormat: .jpeg, maxFrames: 0)])
    }
    #expect(error?.code == .invalidField && error?.field == "max_frames")
    var smaller = animated
    smaller.maxWidth = 9
    let (_, results) = try process(bytes, [animated, smaller])
    for (configuration, result) in zip([animated, smaller], results) {
      #expect(try result.get().bytes == process(bytes, configuration).bytes)
    }
  }

  @Test("the work on all frames is limited")
  func work() {
    var limits = ImageLimits()
    limits.maxWorkPixels = 1_000_000
    let configuration = ProcessingConfiguration(
      maxWidth: 500, maxHeight: 500, preferredFormat: .png, resizeMode: .stretch, allowUpscale: true, maxFrames: 0)
    let error = #expect(throws: PipelineError.self) {
      _ = try process(Self.animation(frameCount: 9).bytes, configuration, limits: limits)
    }
    #expect(error?.limit?.name == "max_work_pixels" && error?.limit?.value == 1_500_000)
  }

  @Test("memory does not grow with the number of frames, and stays within the plan")
  func memory() throws {
    let configuration = ProcessingConfiguration(maxWidth: 20, preferredFormat: .png, maxFrames: 0)
    var peaks: [UInt64] = []
    for frameCount in [20, 400] {
      let frame = GIFFrame(width: 40, height: 40, indices: noiseSamples(1600).map { $0 & 7 })
      let animation = GIFAnimation(
        width: 40, height: 40,
        frames: (0..<frameCount).map { index in
          var frame = frame
          frame.indices[index % 1600] ^= 1
          return frame
        })
      var reader = ImageReader(limits: ImageLimits())
      _ = try reader.push(animation.bytes.span.bytes, isLast: true)
      let plan = try reader.plan(configuration)
      let (_, report) = try process(animation.bytes, configuration, windowByteCount: 5000)
      #expect(report.peakMemoryByteCount <= plan.workingSetByteCount)
      peaks.append(report.peakMemoryByteCount)
    }
    // The spool takes blocks of 64 KiB, of which the longer animation needs more.
    #expect(peaks[1] <= peaks[0] + 1 << 20)
  }

  @Test("a GIF of few colors is a GIF of the same frames", arguments: 0..<20 as Range<UInt64>)
  func exactGIF(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let animation = GIFAnimation.random(&generator, frameCount: Int.random(in: 2...6, using: &generator))
    let configuration = ProcessingConfiguration(alwaysEncode: true, maxFrames: 0)
    let (bytes, report) = try process(animation.bytes, configuration, windowByteCount: 30)
    #expect(report.output.format == "gif" && report.messages == [] && !report.isPassedThrough)
    let before = try Pixels.decode(animation.bytes, frames: (0, 0))
    let after = try Pixels.decode(bytes, frames: (0, 0))
    #expect(after.frames.count == report.output.frameCount)
    #expect(after.frames.count == 1 || after.frames.allSatisfy { $0.playCount == 4 })
    // Equal frames may have become one, and long ones several.
    #expect(before.frameBytes.allSatisfy { after.frameBytes.contains($0) })
    #expect(after.frameBytes.allSatisfy { before.frameBytes.contains($0) })
    if after.frames.count > 1 {
      #expect(after.frames.map(\.duration).reduce(0, +) == before.frames.map(\.duration).reduce(0, +))
    }
  }

  @Test("one frame of a GIF stays a PNG or JPEG, unless a GIF is requested")
  func stillGIF() throws {
    let bytes = Fixture.bytes("photo.gif")
    #expect(try process(bytes, ProcessingConfiguration()).report.output.format == "jpeg")
    let (gif, report) = try process(bytes, ProcessingConfiguration(preferredFormat: .gif))
    #expect(report.output.format == "gif" && report.output.frameCount == 1)
    let (before, after) = (try Pixels.decode(bytes), try Pixels.decode(gif))
    for (ours, theirs) in zip(after.mean, before.mean) { #expect(abs(ours - theirs) < 1) }
  }

  /// A GIF of eight colors in which every pixel changes, so that the global palette waits for more frames.
  private static func noisyGIF() -> [UInt8] {
    let noise = noiseSamples(120 * 120).map { $0 & 7 }
    let frames = (0..<20 as Range<UInt8>).map { index in
      GIFFrame(width: 120, height: 120, indices: noise.map { ($0 + index) & 7 })
    }
    return GIFAnimation(width: 120, height: 120, frames: frames).bytes
  }

  @Test("a WebP to GIF leaves before half of it arrived, unless the file may be passed through")
  func streamedWebP() throws {
    let gif = Self.noisyGIF()
    let webp = WebPOptions(isLossless: true)
    let bytes = try process(gif, ProcessingConfiguration(preferredFormat: .webp, maxFrames: 0, webp: webp)).bytes
    for (format, isStreamed) in [(OutputFormat.gif, true), (.original, false)] {
      var reader = ImageReader(limits: ImageLimits())
      let configuration = ProcessingConfiguration(preferredFormat: format, maxFrames: 0)
      reader.configurations = [configuration]
      let half = bytes.span.bytes.extracting(0..<bytes.count / 2)
      let progress = try reader.push(half.extracting(first: half.byteCount / 4), isLast: false)
      #expect(progress.isComplete == isStreamed)
      guard isStreamed else { continue }
      let plan = try reader.plan(configuration)
      let route = try reader.takeRoute(plan, cancellation: Cancellation())
      var count = 0
      let rest = half.extracting(droppingFirst: progress.consumedByteCount)
      _ = try route.push(rest, isLast: false) { count += $0.byteCount }
      #expect(count > 500)
    }
  }

  @Test("a GIF's first bytes leave before half of its animation arrived")
  func streamedGIF() throws {
    let bytes = Self.noisyGIF()
    var reader = ImageReader(limits: ImageLimits())
    let consumed = try reader.push(bytes.span.bytes, isLast: false).consumedByteCount
    let plan = try reader.plan(ProcessingConfiguration(alwaysEncode: true, maxFrames: 0))
    let route = try reader.takeRoute(plan, cancellation: Cancellation())
    var count = 0
    _ = try route.push(bytes.span.bytes.extracting(consumed..<bytes.count / 2), isLast: false) { count += $0.byteCount }
    #expect(count > 500)
  }
}
