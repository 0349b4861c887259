import ImageCodecs
import ImageKernels
import ImagePipeline
import TestSupport
import Testing

@Suite("Similarity targets")
struct SimilarityTargetTests {
  private static let fixtures = ["photo-420.jpg", "photo.png", "alpha.png", "orientation-6.jpg"]
  private static let formats: [OutputFormat] =
    [.jpeg, .webp] + (ImageFormat.avif.isEncodable ? [.avif] : []) + (ImageFormat.jxl.isEncodable ? [.jxl] : [])

  private func run(
    _ name: String, _ format: OutputFormat, target: Double, quality: Double? = nil, limit: UInt64? = nil
  ) throws -> (bytes: [UInt8], report: ProcessingReport) {
    try process(
      Fixture.bytes(name),
      ProcessingConfiguration(
        maxWidth: 200, compressionQuality: quality, preferredFormat: format, maxBytes: limit, targetSimilarity: target))
  }

  /// Returns the score at a quality, as no lower quality can reach the maximum.
  private func score(_ name: String, _ format: OutputFormat, quality: Double) throws -> Double {
    try #require(run(name, format, target: 100, quality: quality).report.similarity)
  }

  @Test("the result reaches the target, or has the highest quality and a warning", arguments: fixtures, formats)
  func reaches(name: String, format: OutputFormat) throws {
    for target in [40.0, 80] {
      let result = try run(name, format, target: target)
      let (similarity, quality) = (
        try #require(result.report.similarity), try #require(result.report.compressionQuality)
      )
      #expect(result.bytes.count == Int(result.report.outputByteCount))
      if similarity < target {
        #expect(quality == 1 && result.report.messages.contains { $0.contains("compression_quality") })
      } else {
        #expect(result.report.messages.isEmpty)
      }
    }
  }

  /// The scores of these photographs rise with the quality; those of graphics do not everywhere.
  @Test("a slightly lower quality does not reach the target", arguments: ["photo-420.jpg", "photo-gray.jpg"], formats)
  func isLowest(name: String, format: OutputFormat) throws {
    for target in [65.0, 80] {
      let report = try run(name, format, target: target).report
      let (similarity, quality) = (try #require(report.similarity), try #require(report.compressionQuality))
      // The quality of a JPEG can lie between two that can be requested.
      let whole = (quality * 100 + 0.001).rounded(.down) / 100
      #expect(try whole == quality ? score(name, format, quality: quality) == similarity : format == .jpeg)
      // Each step of AVIF's quantizer is 0.015 of quality, and small images have steps of their own.
      let lower = quality - ([.avif, .jxl].contains(format) ? 0.04 : 0.03)
      #expect(try similarity < target + 0.3 || score(name, format, quality: lower) < target, "\(target): \(report)")
    }
  }

  @Test(
    "the score is that of the decoded result against the uncompressed rows", arguments: ["photo-420.jpg", "photo.png"])
  func measures(name: String) throws {
    for format in [OutputFormat.jpeg, .webp] {
      let result = try run(name, format, target: 60)
      let plain = try process(Fixture.bytes(name), ProcessingConfiguration(maxWidth: 200, preferredFormat: .png))
      // Viewers convert WebP's planes to RGB at once, those of JPEG at the full size.
      let shown =
        format == .webp
        ? result.bytes : try process(result.bytes, ProcessingConfiguration(preferredFormat: .png)).bytes
      let (reference, pixels) = (try Pixels.decode(plain.bytes), try Pixels.decode(shown, returnsRGB: true))
      try #require(reference.format == .rgb8 && pixels.format == .rgb8)
      let (width, height) = (reference.layout[0].width, reference.layout[0].height)
      let similarity = try ImageSimilarity(
        width: width, height: height, format: .rgb8, budget: ImageBudget(limit: 1 << 24))
      let rows = try [reference, pixels].map { try rowBuffer($0.planes[0], rowByteCount: width * 3) }
      withExtendedLifetime(rows) {
        similarity.push(reference: rows[0].rows(count: height), result: rows[1].rows(count: height))
      }
      let reported = try #require(result.report.similarity)
      #expect(abs(similarity.score - reported) < 0.05, "\(format)")
    }
  }

  @Test("a higher target takes more bytes, and a size limit overrides it with a warning")
  func sizes() throws {
    for format in Self.formats {
      let results = try [35.0, 55, 75].map { try run("photo-420.jpg", format, target: $0) }
      let counts = results.map(\.bytes.count)
      #expect(counts == counts.sorted() && counts[0] < counts[2])
      let limit = UInt64(counts[1])
      let limited = try run("photo-420.jpg", format, target: 75, limit: limit)
      #expect(limited.bytes.count <= limit && limited.bytes.count > limit / 2)
      #expect(limited.report.messages.contains { $0.contains("max_bytes") && $0.contains("target_similarity") })
      let similarity = try #require(limited.report.similarity)
      #expect(similarity < 75)
      // With a size limit, the quality of a JPEG is a whole one.
      let allowed = format == .jpeg ? limit * 11 / 10 : limit
      let exact = try run("photo-420.jpg", format, target: 55, limit: allowed)
      #expect(exact.bytes.count <= allowed && (exact.report.similarity ?? 0) >= 55)
      #expect(throws: PipelineError.self) { try run("photo-420.jpg", format, target: 55, limit: 20) }
    }
  }

  @Test("a JPEG has full chroma below 0.9 if half of it does not reach the target, unless another field decides")
  func chroma() throws {
    let half = try score("photo-420.jpg", .jpeg, quality: 0.89)
    var configuration = ProcessingConfiguration(
      maxWidth: 200, preferredFormat: .jpeg, targetSimilarity: (half + 1).rounded(.up))
    func isFull() throws -> Bool {
      let layout = try Pixels.decode(process(Fixture.bytes("photo-420.jpg"), configuration).bytes).layout
      return layout[1].width == layout[0].width
    }
    let report = try process(Fixture.bytes("photo-420.jpg"), configuration).report
    #expect(try isFull() && #require(report.compressionQuality) < 0.9, "\(report)")
    #expect(try #require(report.similarity) < #require(configuration.targetSimilarity) + 0.3)
    configuration.compressionQuality = 0.89
    #expect(try !isFull())
    configuration.compressionQuality = nil
    configuration.maxBytes = report.outputByteCount / 2
    #expect(try !isFull())
    configuration.maxBytes = nil
    configuration.jpeg = JPEGOptions(chromaSubsampling: .quarter)
    #expect(try !isFull())
    configuration.jpeg = nil
    configuration.targetSimilarity = half - 1
    #expect(try !isFull())
  }

  @Test("a lossless result is refused, naming the field")
  func lossless() throws {
    for configuration in [
      ProcessingConfiguration(preferredFormat: .png, targetSimilarity: 80),
      ProcessingConfiguration(preferredFormat: .webp, targetSimilarity: 80, webp: WebPOptions(isLossless: true)),
    ] {
      let error = #expect(throws: PipelineError.self) { try process(Fixture.bytes("photo.png"), configuration) }
      #expect(error?.code == .invalidField && error?.field == "target_similarity")
    }
  }

  @Test("too little memory is refused, naming the field")
  func memory() throws {
    let configuration = ProcessingConfiguration(
      maxWidth: 2000, compressionQuality: 0.8, preferredFormat: .jpeg, allowUpscale: true)
    var target = configuration
    target.targetSimilarity = 70
    let limits = ImageLimits(memory: 4 << 20)
    _ = try process(Fixture.bytes("photo-420.jpg"), configuration, limits: limits)
    let error = #expect(throws: PipelineError.self) {
      try process(Fixture.bytes("photo-420.jpg"), target, limits: limits)
    }
    #expect(error?.code == .limitExceeded && error?.field == "target_similarity")
    #expect(error?.limit?.name == "image_memory_limit")
  }

  @Test("the working set covers all trials", arguments: fixtures, formats)
  func workingSet(name: String, format: OutputFormat) throws {
    for width in [200, 700] {
      let configuration = ProcessingConfiguration(
        maxWidth: width, preferredFormat: format, allowUpscale: true, targetSimilarity: 70)
      var reader = ImageReader(limits: ImageLimits())
      #expect(try reader.push(Fixture.bytes(name).span.bytes, isLast: true).isComplete)
      let estimate = try reader.plan(configuration).workingSetByteCount
      let report = try process(Fixture.bytes(name), configuration).report
      #expect(report.peakMemoryByteCount <= estimate, "\(width)")
    }
  }

  @Test("trials count as work")
  func work() throws {
    let configuration = ProcessingConfiguration(maxWidth: 100, preferredFormat: .jpeg, targetSimilarity: 70)
    var limits = ImageLimits()
    limits.maxWorkPixels = 100 * 67 * 10
    let error = #expect(throws: PipelineError.self) {
      try process(Fixture.bytes("photo-420.jpg"), configuration, limits: limits)
    }
    #expect(error?.limit?.name == "max_work_pixels")
  }

  @Test("a result below 8x8 is delivered with a warning, and nothing is measured")
  func tiny() throws {
    let result = try process(
      Fixture.bytes("photo.png"),
      ProcessingConfiguration(maxWidth: 6, compressionQuality: 0.7, preferredFormat: .jpeg, targetSimilarity: 80))
    #expect(result.report.similarity == nil && result.report.compressionQuality == 0.7)
    #expect(result.report.messages.contains { $0.contains("target_similarity") })
  }

  @Test("the result is the same however the upload is split, and is never passed through")
  func cuts() throws {
    let configuration = ProcessingConfiguration(targetSimilarity: 70)
    let whole = try process(Fixture.bytes("photo-420.jpg"), configuration)
    #expect(!whole.report.isPassedThrough && whole.report.similarity != nil)
    for windowByteCount in [1, 4096] {
      #expect(
        try process(Fixture.bytes("photo-420.jpg"), configuration, windowByteCount: windowByteCount).bytes
          == whole.bytes)
    }
  }
}
