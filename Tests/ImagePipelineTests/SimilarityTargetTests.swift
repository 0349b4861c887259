import ImageCodecs
import ImageKernels
import ImagePipeline
import TestSupport
import Testing

@Suite("Similarity targets")
struct SimilarityTargetTests {
  private static let fixtures = ["photo-420.jpg", "photo-gray.jpg", "photo.png", "alpha.png", "orientation-6.jpg"]
  private static let formats: [OutputFormat] = [.jpeg, .webp] + (ImageFormat.avif.isEncodable ? [.avif] : [])

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

  @Test("the result reaches the target, and a slightly lower quality does not", arguments: fixtures, formats)
  func reaches(name: String, format: OutputFormat) throws {
    for target in [40.0, 65, 80] {
      let result = try run(name, format, target: target)
      let (similarity, quality) = (
        try #require(result.report.similarity), try #require(result.report.compressionQuality)
      )
      #expect(result.bytes.count == Int(result.report.outputByteCount))
      guard similarity >= target else {
        #expect(quality == 1 && result.report.warnings.contains { $0.contains("compression_quality") })
        continue
      }
      #expect(result.report.warnings.isEmpty)
      #expect(try score(name, format, quality: quality) == similarity)
      // Each step of AVIF's quantizer is 0.015 of quality, and small images have steps of their own.
      let lower = quality - (format == .avif ? 0.06 : 0.04)
      let isNear = similarity < target + 1
      #expect(
        try isNear || lower < 0.01 || score(name, format, quality: lower) < target,
        "\(target): \(similarity) at \(quality)")
    }
  }

  @Test(
    "the score is that of the decoded result against the uncompressed rows", arguments: ["photo-420.jpg", "photo.png"])
  func measures(name: String) throws {
    for format in [OutputFormat.jpeg, .webp] {
      let result = try run(name, format, target: 60)
      let plain = try process(Fixture.bytes(name), ProcessingConfiguration(maxWidth: 200, preferredFormat: .png))
      let decoded = try process(result.bytes, ProcessingConfiguration(preferredFormat: .png))
      let (reference, pixels) = (try Pixels.decode(plain.bytes), try Pixels.decode(decoded.bytes))
      try #require(reference.format == .rgb8 && pixels.format == .rgb8)
      let (width, height) = (reference.layout[0].width, reference.layout[0].height)
      let similarity = try ImageSimilarity(
        width: width, height: height, format: .rgb8, budget: ImageBudget(limit: 1 << 24))
      similarity.push(
        reference: try rowBuffer(reference.planes[0], rowByteCount: width * 3).rows(count: height),
        result: try rowBuffer(pixels.planes[0], rowByteCount: width * 3).rows(count: height))
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
      #expect(limited.report.warnings.contains { $0.contains("max_bytes") && $0.contains("target_similarity") })
      let similarity = try #require(limited.report.similarity)
      #expect(similarity < 75)
      #expect(try run("photo-420.jpg", format, target: 55, limit: limit).bytes == results[1].bytes)
      #expect(throws: PipelineError.self) { try run("photo-420.jpg", format, target: 55, limit: 20) }
    }
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
    limits.maxWorkPixels = 100 * 67 * 8
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
    #expect(result.report.warnings.contains { $0.contains("target_similarity") })
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
