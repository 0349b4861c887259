import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Backpressure")
struct BackPressureTests {
  private static let maxAheadByteCount = 1 << 20
  private static let stored = PNGOptions(compressionLevel: 0)

  /// Configurations that produce much output from one input window, each in another stage.
  private static let cases: [(name: String, configuration: ProcessingConfiguration)] = [
    ("decoded rows", ProcessingConfiguration(preferredFormat: .png, png: stored)),
    (
      "two passes of rows",
      ProcessingConfiguration(maxWidth: 1500, preferredFormat: .png, allowUpscale: true, png: stored)
    ),
    ("orientation", ProcessingConfiguration(preferredFormat: .png, rotation: 90, png: stored)),
    (
      "padding",
      ProcessingConfiguration(
        maxWidth: 600, maxHeight: 3000, preferredFormat: .png, allowUpscale: true, pad: true, png: stored)
    ),
    (
      "interlacing",
      ProcessingConfiguration(preferredFormat: .png, png: PNGOptions(compressionLevel: 0, isInterlaced: true))
    ),
    (
      "a progressive result",
      ProcessingConfiguration(
        maxWidth: 1500, compressionQuality: 1, preferredFormat: .jpeg, allowUpscale: true,
        jpeg: JPEGOptions(isProgressive: true))
    ),
    (
      "a limit of bytes",
      ProcessingConfiguration(preferredFormat: .png, maxBytes: 1 << 30, png: stored)
    ),
  ]

  /// Returns a noise image whose rows are complete only with its last scan.
  private static func progressiveImage() throws -> [UInt8] {
    let (width, height) = (800, 600)
    let noise = try encodedImage(
      noiseSamples(width * height * 3), width: width, height: height, pixelFormat: .rgb8)
    return try process(
      noise,
      ProcessingConfiguration(
        compressionQuality: 0.9, preferredFormat: .jpeg, jpeg: JPEGOptions(isProgressive: true))
    ).bytes
  }

  @Test("pauses when enough output waits, and resumes to the same result")
  func pauses() throws {
    let image = try Self.progressiveImage()
    for (name, configuration) in Self.cases {
      let cut = try process(image, configuration, windowByteCount: 5000)
      var reader = ImageReader(limits: ImageLimits())
      var consumed = try reader.push(image.span.bytes, isLast: true).consumedByteCount
      let plan = try reader.plan(configuration)
      let path = try reader.takeRoute(plan, cancellation: Cancellation())
      var result: [UInt8] = []
      var (pauseCount, maxAhead) = (0, 0)
      var progress = PipelineProgress.paused
      while progress == .paused {
        let first = result.count
        let rest = image.span.bytes.extracting(droppingFirst: consumed)
        progress = try path.advance(rest, isLast: true, consumed: &consumed) { _, bytes in
          bytes.withUnsafeBytes { result.append(contentsOf: $0) }
        }
        maxAhead = max(maxAhead, result.count - first)
        pauseCount += progress == .paused ? 1 : 0
      }
      #expect(progress == .done && result == cut.bytes, "\(name)")
      #expect(pauseCount > 0 && maxAhead < Self.maxAheadByteCount, "\(name): \(maxAhead) bytes at once")
      let report = path.report(queued: .zero, total: .zero)
      #expect(report.outputByteCount == UInt64(result.count), "\(name)")
      #expect(report.inputByteCount == cut.report.inputByteCount, "\(name)")
      #expect(report.peakMemoryByteCount <= plan.workingSetByteCount, "\(name)")
    }
  }

  @Test("pauses between the rows of a small strip that is enlarged")
  func enlarged() throws {
    // Rows of one color, and equal rows, take almost no bytes.
    let image = try encodedImage(noiseSamples(600 * 8 * 3), width: 600, height: 8, pixelFormat: .rgb8)
    let configuration = ProcessingConfiguration(
      maxWidth: 1200, maxHeight: 3000, preferredFormat: .png, resizeMode: .stretch, allowUpscale: true,
      png: Self.stored)
    var reader = ImageReader(limits: ImageLimits())
    var consumed = try reader.push(image.span.bytes, isLast: true).consumedByteCount
    let plan = try reader.plan(configuration)
    let path = try reader.takeRoute(plan, cancellation: Cancellation())
    var byteCounts: [Int] = []
    var progress = PipelineProgress.paused
    while progress == .paused {
      var byteCount = 0
      let rest = image.span.bytes.extracting(droppingFirst: consumed)
      progress = try path.advance(rest, isLast: true, consumed: &consumed) { _, bytes in byteCount += bytes.byteCount }
      byteCounts.append(byteCount)
    }
    #expect(byteCounts.count > 3 && byteCounts.allSatisfy { $0 < Self.maxAheadByteCount }, "\(byteCounts)")
  }

  @Test("stops between strips of a result larger than its image when it is cancelled")
  func cancellation() throws {
    let image = try encodedImage([90, 90, 90], width: 1, height: 1, pixelFormat: .rgb8)
    let configuration = ProcessingConfiguration(
      maxWidth: 2000, maxHeight: 2000, preferredFormat: .png, allowUpscale: true)
    var reader = ImageReader(limits: ImageLimits())
    let consumed = try reader.push(image.span.bytes, isLast: true).consumedByteCount
    let cancellation = Cancellation()
    let plan = try reader.plan(configuration)
    let path = try reader.takeRoute(plan, cancellation: cancellation)
    // The image has one color, so that output never causes a pause.
    let error = #expect(throws: PipelineError.self) {
      _ = try path.push(image.span.bytes.extracting(droppingFirst: consumed), isLast: true) { (_: RawSpan) in
        cancellation.cancel()
      }
    }
    #expect(error == .cancelled)
  }

  @Test("shares the output limit among all renditions")
  func renditions() throws {
    let image = try Self.progressiveImage()
    let configurations = [
      ProcessingConfiguration(preferredFormat: .png, png: Self.stored),
      ProcessingConfiguration(maxWidth: 700, preferredFormat: .png, png: Self.stored),
    ]
    let cut = try process(image, configurations, windowByteCount: 5000)
    var reader = ImageReader(limits: ImageLimits())
    var consumed = try reader.push(image.span.bytes, isLast: true).consumedByteCount
    let plan = try reader.plan(configurations)
    let path = try reader.takeRoute(plan, renditionIDs: ["a", "b"], cancellation: Cancellation())
    var results: [[UInt8]] = [[], []]
    var progress = PipelineProgress.paused
    while progress == .paused {
      var byteCount = 0
      let rest = image.span.bytes.extracting(droppingFirst: consumed)
      progress = try path.advance(rest, isLast: true, consumed: &consumed) { index, bytes in
        byteCount += bytes.byteCount
        bytes.withUnsafeBytes { results[index].append(contentsOf: $0) }
      }
      #expect(byteCount < Self.maxAheadByteCount)
    }
    for (result, expected) in zip(results, cut.results) { #expect(try expected.get().bytes == result) }
  }
}
