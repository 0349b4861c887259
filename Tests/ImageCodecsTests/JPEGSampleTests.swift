import ImageCodecs
import TestSupport
import Testing

@Suite("Samples of JPEGs")
struct JPEGSampleTests {
  private let unlimited = ImageBudget(limit: 1 << 28)

  /// Returns the size of the file of all rows.
  private func size(_ rows: borrowing Strip, _ options: EncoderOptions) throws -> Double {
    var encoder = try Encoder(options: options, budget: unlimited)
    var count = 0
    let buffer = try PixelBuffer(byteCount: 1 << 16, budget: unlimited)
    try encoder.write(rows)
    try encoder.finish()
    encoder.drain(buffer) { count += $0.byteCount }
    return Double(count)
  }

  @Test(
    "the size of a small image is estimated from all blocks",
    arguments: ["photo-420.jpg", "photo-odd.jpg", "photo.png", "photo-gray.jpg"], [ChromaSubsampling.quarter, .full])
  func small(name: String, subsampling: ChromaSubsampling) throws {
    let pixels = try Pixels.decode(Fixture.bytes(name))
    guard pixels.format != .ycc8 || (subsampling == .quarter) == (pixels.layout[1].horizontalScale < 1) else { return }
    var options = EncoderOptions(
      format: .jpeg, width: pixels.layout[0].width, height: pixels.layout[0].height, pixelFormat: pixels.format,
      subsampling: subsampling)
    let buffers = try pixels.planes.indices.map { index in
      try rowBuffer(
        pixels.planes[index], rowByteCount: options.planeWidth(index) * options.pixelFormat.pixelByteCount)
    }
    let rows = Strip(format: options.pixelFormat, rows: buffers.map { $0.rows(count: $0.rowCount) })
    let budget = ImageBudget(limit: 1 << 24)
    do {
      let sample = try JPEGSample(options: options, rows: rows, budget: budget)
      for (quality, part) in [(10, 0), (50, 17), (80, 63), (97, 32), (100, 0)] {
        (options.quality, options.quality64ths) = (quality, part)
        let (estimate, exact) = (sample.byteCount(quality: quality, quality64ths: part), try size(rows, options))
        #expect(abs(estimate / exact - 1) < 0.05, "\(quality): \(estimate), not \(exact)")
      }
      #expect(UInt64(budget.peak) <= (try JPEGSample.estimatedByteCount(options)))
    }
    withExtendedLifetime(buffers) { #expect(budget.used == 0) }
  }

  @Test("the ratio of two sizes of a large image is estimated from a part of it, in little memory")
  func large() throws {
    // A photograph and noise side by side, in rows: a sample that missed columns or rows would not notice either.
    let (width, height) = (1600, 1200)
    let noise = noiseSamples(width * height)
    var plane = [UInt8](repeating: 0, count: width * height)
    for y in 0..<height {
      for x in 0..<width {
        let smooth = (x * 3 + y * 2 + (x / 40 + y / 40) % 2 * 60) / 40 + 90
        plane[y * width + x] = (x / 200 + y / 200) % 3 == 0 ? noise[y * width + x] / 4 + 90 : UInt8(smooth & 255)
      }
    }
    let gray = try rowBuffer(plane, rowByteCount: width)
    var options = EncoderOptions(format: .jpeg, width: width, height: height, pixelFormat: .gray8)
    let budget = ImageBudget(limit: 1 << 20)
    let sample = try withExtendedLifetime(gray) {
      try JPEGSample(options: options, rows: Strip(format: .gray8, rows: [gray.rows(count: height)]), budget: budget)
    }
    #expect(UInt64(budget.peak) <= (try JPEGSample.estimatedByteCount(options)) && budget.used < 400_000)
    func exact(_ quality: Int) throws -> Double {
      options.quality = quality
      return try size(Strip(format: .gray8, rows: [gray.rows(count: height)]), options)
    }
    func estimate(_ quality: Int) -> Double { sample.byteCount(quality: quality, quality64ths: 0) }
    for (low, high) in [(40, 80), (70, 75), (85, 95)] {
      let ratio = try (exact(high) / exact(low)) / (estimate(high) / estimate(low))
      #expect(abs(ratio - 1) < 0.03, "\(low), \(high)")
    }
  }

  @Test(
    "a sample has about 2048 blocks of a larger image, whatever its shape",
    arguments: [(129, 35_900), (16, 41_520), (7680, 4320), (12_000, 9000), (65_535, 48), (40_931, 18_770)],
    [ChromaSubsampling.quarter, .half, .full])
  func shapes(size: (width: Int, height: Int), subsampling: ChromaSubsampling) throws {
    let options = EncoderOptions(
      format: .jpeg, width: size.width, height: size.height, pixelFormat: .ycc8, subsampling: subsampling)
    let blockCount = Double(try JPEGSample.estimatedByteCount(options)) / 128
    #expect((1100...2700).contains(blockCount))
  }

  @Test("rows that do not fit the options are refused, and too little memory")
  func refusals() throws {
    let options = EncoderOptions(format: .jpeg, width: 64, height: 64, pixelFormat: .gray8)
    let rows = try rowBuffer(noiseSamples(64 * 63), rowByteCount: 64)
    #expect(throws: CodecError.self) {
      try JPEGSample(options: options, rows: Strip(format: .gray8, rows: [rows.rows(count: 63)]), budget: unlimited)
    }
    let all = try rowBuffer(noiseSamples(64 * 64), rowByteCount: 64)
    #expect(throws: CodecError.self) {
      try JPEGSample(
        options: options, rows: Strip(format: .gray8, rows: [all.rows(count: 64)]), budget: ImageBudget(limit: 10_000))
    }
  }
}
