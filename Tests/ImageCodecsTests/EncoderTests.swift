import ImageCodecs
import TestSupport
import Testing

@Suite("Encoders")
struct EncoderTests {
  /// Encodes an image, supplied as one strip per plane, in portions of `rowCount` rows.
  private func encode(_ pixels: Pixels, _ options: EncoderOptions, rowCount: Int, budget: ImageBudget) throws
    -> [UInt8]
  {
    var encoder = try Encoder(options: options, budget: budget)
    let buffer = try PixelBuffer(byteCount: 1000, budget: budget)
    var output: [UInt8] = []
    let planes = try pixels.planes.indices.map { index in
      try rowBuffer(
        pixels.planes[index], rowByteCount: pixels.layout[index].width * pixels.format.pixelByteCount)
    }
    for first in stride(from: 0, to: pixels.layout[0].height, by: rowCount) {
      let rows = planes.map { plane in
        plane.rows(first: min(first, plane.rowCount), count: max(0, min(rowCount, plane.rowCount - first)))
      }
      try encoder.write(Strip(format: pixels.format, rows: rows))
      encoder.drain(buffer) { output.append($0) }
    }
    try encoder.finish()
    encoder.drain(buffer) { output.append($0) }
    return output
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var fixture: String
    var format: ImageFormat
    var subsampling = ChromaSubsampling.quarter
    var tolerance: Double
    var testDescription: String { "\(fixture) as \(format)" }
  }

  @Test(
    "write a file that decodes to the same image, for any strip height",
    arguments: [
      Case(fixture: "photo-420.jpg", format: .jpeg, tolerance: 1),
      Case(fixture: "photo-444.jpg", format: .jpeg, subsampling: .full, tolerance: 1),
      Case(fixture: "photo-odd.jpg", format: .jpeg, tolerance: 1),
      Case(fixture: "photo-gray.jpg", format: .jpeg, tolerance: 1),
      Case(fixture: "photo.png", format: .jpeg, tolerance: 1),
      Case(fixture: "photo.png", format: .png, tolerance: 0.001),
      Case(fixture: "alpha.png", format: .png, tolerance: 0.001),
      Case(fixture: "gray.png", format: .png, tolerance: 0.001),
      Case(fixture: "photo.png", format: .webp, tolerance: 2),
      Case(fixture: "alpha.png", format: .webp, tolerance: 2),
    ])
  func roundTrip(test: Case) throws {
    let pixels = try Pixels.decode(Fixture.bytes(test.fixture))
    let options = EncoderOptions(
      format: test.format, width: pixels.layout[0].width, height: pixels.layout[0].height, pixelFormat: pixels.format,
      subsampling: test.subsampling, quality: 95)
    let budget = ImageBudget(limit: 1 << 26)
    let whole = try encode(pixels, options, rowCount: 16, budget: budget)
    #expect(UInt64(budget.peak) <= (try options.estimatedByteCount()) + UInt64(whole.count) * 3 + 4096)
    for rowCount in [1, 7, 10000] {
      #expect(try encode(pixels, options, rowCount: rowCount, budget: budget) == whole)
    }
    #expect(budget.used == 0)
    let again = try Pixels.decode(whole)
    #expect(again.layout[0].width == pixels.layout[0].width && again.layout[0].height == pixels.layout[0].height)
    for (after, before) in zip(again.mean, pixels.mean) { #expect(abs(after - before) <= test.tolerance) }
  }

  @Test(
    "of lossy WebP convert RGB as they convert RGBA that is opaque, for any strip height",
    arguments: [(1, 1), (1, 2), (2, 3), (5, 31), (33, 16), (40, 37)])
  func opaqueWebP(width: Int, height: Int) throws {
    let colors = noiseSamples(width * height * 3)
    let opaque = (0..<width * height).flatMap { colors[3 * $0..<3 * $0 + 3] + [255] }
    func encode(_ samples: [UInt8], _ format: PixelFormat, rowCount: Int) throws -> [UInt8] {
      var pixels = try Pixels.decode(Fixture.bytes("photo.png"))
      pixels.format = format
      pixels.layout = [PlaneLayout(width: width, height: height)]
      pixels.planes = [samples]
      let options = EncoderOptions(format: .webp, width: width, height: height, pixelFormat: format, quality: 80)
      return try self.encode(pixels, options, rowCount: rowCount, budget: ImageBudget(limit: 1 << 26))
    }
    let expected = try encode(opaque, .rgba8, rowCount: height)
    for rowCount in [1, 3, 16, 17, height] { #expect(try encode(colors, .rgb8, rowCount: rowCount) == expected) }
  }

  /// With ISA-L, whose level 0 has fixed codes, noise has more bytes than its rows.
  @Test("of noise at level 0 of PNG keep to their limits", arguments: [true, false])
  func noise(isInterlaced: Bool) throws {
    var generator = SeededGenerator(seed: 5)
    let (width, height) = (600, 500)
    var pixels = try Pixels.decode(Fixture.bytes("photo.png"))
    pixels.layout = [PlaneLayout(width: width, height: height)]
    pixels.planes = [(0..<3 * width * height).map { _ in UInt8.random(in: 0...255, using: &generator) }]
    var options = EncoderOptions(format: .png, width: width, height: height, pixelFormat: .rgb8)
    options.png = PNGOptions(compressionLevel: 0, isInterlaced: isInterlaced)
    let budget = ImageBudget(limit: 1 << 28)
    let whole = try encode(pixels, options, rowCount: 16, budget: budget)
    #expect(UInt64(whole.count) <= (try options.maxByteCount()))
    #expect(UInt64(budget.peak) <= (try options.estimatedByteCount()) + 4096)
  }

  @Test(
    "of every format write a file that decodes to the same image", arguments: ImageFormat.allCases.filter(\.isEncodable)
  )
  func everyFormat(format: ImageFormat) throws {
    for name in ["photo.png", "alpha.png"] {
      let pixels = try Pixels.decode(Fixture.bytes(name))
      guard format.takes(pixels.format) else { continue }
      let options = EncoderOptions(
        format: format, width: pixels.layout[0].width, height: pixels.layout[0].height, pixelFormat: pixels.format,
        quality: 95)
      let budget = ImageBudget(limit: 1 << 28)
      let whole = try encode(pixels, options, rowCount: 16, budget: budget)
      let (largest, estimate) = (try options.maxByteCount(), try options.estimatedByteCount())
      #expect(budget.used == 0 && UInt64(whole.count) <= largest)
      #expect(UInt64(budget.peak) <= estimate + 4096, "\(format) of \(name)")
      #expect(try encode(pixels, options, rowCount: 7, budget: budget) == whole)
      guard format.isDecodable else { continue }
      let again = try Pixels.decode(whole)
      #expect(again.layout[0].width == pixels.layout[0].width && again.layout[0].height == pixels.layout[0].height)
      if options.isLossy || (format == .gif && name == "photo.png") {
        for (after, before) in zip(again.mean, pixels.mean) { #expect(abs(after - before) <= 3) }
      } else if format != .gif {  // its alpha is 0 or 255
        #expect(again.planes == pixels.planes, "\(format) of \(name)")
      }
    }
  }

  @Test("of PNG write the right CRC of the last chunk, which is empty, with every library", arguments: [2, 6])
  func lastChunk(level: Int) throws {
    let pixels = try Pixels.decode(Fixture.bytes("photo.png"))
    var options = EncoderOptions(
      format: .png, width: pixels.layout[0].width, height: pixels.layout[0].height, pixelFormat: pixels.format)
    options.png.compressionLevel = level
    let bytes = try encode(pixels, options, rowCount: 16, budget: ImageBudget(limit: 1 << 26))
    #expect(Array(bytes.suffix(12)) == Container.pngChunk("IEND", []))
  }

  @Test("of JPEG buffer at most 1 MB of symbols and their 0.4 MB of output, and send what follows")
  func boundedJPEG() throws {
    let width = 512
    let strip = try rowBuffer(noiseSamples(width * 16), rowByteCount: width)
    let peaks = try [1024, 4096].map { height in
      let options = EncoderOptions(format: .jpeg, width: width, height: height, pixelFormat: .gray8, quality: 90)
      let budget = ImageBudget(limit: 1 << 26)
      var encoder = try Encoder(options: options, budget: budget)
      let buffer = try PixelBuffer(byteCount: 1000, budget: budget)
      var (sent, firstPart) = (0, 0)
      for first in stride(from: 0, to: height, by: 16) {
        try encoder.write(Strip(format: .gray8, rows: strip.rows(count: 16)))
        encoder.drain(buffer) { sent += $0.byteCount }
        // The headers come at once, the rest when the symbols are no longer buffered.
        if first == 0 { firstPart = sent }
      }
      #expect(sent > firstPart + 65536)
      try encoder.finish()
      #expect(UInt64(budget.peak) <= (try options.estimatedByteCount()) + 4096)
      return budget.peak
    }
    #expect(peaks[0] < 1_550_000 && peaks[1] == peaks[0])
  }

  private static let interruptible: [(format: ImageFormat, isLossless: Bool)] =
    [(.webp, true), (.webp, false), (.png, true)]
    + (ImageFormat.jxl.isEncodable ? [(.jxl, true), (.jxl, false)] : [])

  @Test("of WebP, JPEG XL and palettes ask during their long call whether to go on, and stop", arguments: interruptible)
  func interrupt(format: ImageFormat, isLossless: Bool) throws {
    let (width, height) = (240, 160)
    var options = EncoderOptions(format: format, width: width, height: height, pixelFormat: .rgb8)
    options.webp.isLossless = isLossless
    options.jxl.isLossless = isLossless
    options.png.paletteColors = 256
    let budget = ImageBudget(limit: 1 << 26)
    for isAllowed in [true, false] {
      var encoder = try Encoder(options: options, budget: budget)
      let row = try rowBuffer([UInt8](repeating: 90, count: 3 * width), rowByteCount: 3 * width)
      for _ in 0..<height { try encoder.write(Strip(format: .rgb8, rows: [row.rows(first: 0, count: 1)])) }
      var questionCount = 0
      func mayContinue() -> Bool {
        questionCount += 1
        return isAllowed || questionCount < 2
      }
      if isAllowed {
        try encoder.finish(mayContinue: mayContinue)
        #expect(questionCount > 2 && encoder.pendingByteCount > 0)
      } else {
        let error = #expect(throws: CodecError.self) { try encoder.finish(mayContinue: mayContinue) }
        #expect(error?.code == .interrupted && questionCount == 2 && encoder.pendingByteCount == 0)
      }
    }
    #expect(budget.used == 0)
  }

  /// libjxl 0.7 allocates so many bytes for images of noise, of which it pads rows, in addition to those of a small one.
  private static let measuredByteCounts:
    [(width: Int, height: Int, isLossless: Bool, hasAlpha: Bool, byteCount: UInt64)] = [
      (1, 65535, false, false, 79_000_000), (1, 65535, true, false, 98_100_000), (1, 65535, true, true, 123_900_000),
      (65535, 1, false, true, 28_600_000), (8, 65535, false, true, 118_500_000), (24, 16384, false, true, 56_200_000),
      (33, 16384, false, false, 50_300_000), (16384, 17, false, true, 28_700_000),
    ]

  @Test(
    "of JPEG XL charge what libjxl needs for extreme shapes", .enabled(if: ImageFormat.jxl.isEncodable),
    arguments: measuredByteCounts.indices)
  func extremeShapes(index: Int) throws {
    let measured = Self.measuredByteCounts[index]
    var options = EncoderOptions(
      format: .jxl, width: measured.width, height: measured.height, pixelFormat: measured.hasAlpha ? .rgba8 : .rgb8,
      quality: 90)
    options.jxl.isLossless = measured.isLossless
    let estimate = try options.estimatedByteCount()
    #expect(estimate >= measured.byteCount && estimate <= 2 * measured.byteCount, "\(estimate)")
  }

  @Test("of JPEG XL name a color profile that libjxl refuses", .enabled(if: ImageFormat.jxl.isEncodable))
  func refusedProfile() throws {
    var options = EncoderOptions(format: .jxl, width: 8, height: 1, pixelFormat: .rgb8)
    options.metadata.profile = [UInt8](repeating: 7, count: 200)
    let budget = ImageBudget(limit: 1 << 26)
    let row = try rowBuffer([UInt8](repeating: 90, count: 24), rowByteCount: 24)
    do {
      var encoder = try Encoder(options: options, budget: budget)
      let error = #expect(throws: CodecError.self) {
        try encoder.write(Strip(format: .rgb8, rows: [row.rows(first: 0, count: 1)]))
      }
      #expect(error?.code == .unsupported && error?.message.contains("color profile") == true)
    }
    #expect(budget.used == 0)
  }

  @Test("refuse pixels and sizes that the format does not support")
  func refusals() {
    func code(_ format: ImageFormat, _ pixels: PixelFormat, width: Int = 10, quality: Int = 80) -> CodecError.Code? {
      let options = EncoderOptions(format: format, width: width, height: 10, pixelFormat: pixels, quality: quality)
      do {
        _ = try Encoder(options: options, budget: ImageBudget(limit: 1 << 24))
        return nil
      } catch { return error.code }
    }
    #expect(code(.jpeg, .rgba8) == .unsupported)
    #expect(code(.png, .ycc8) == .unsupported)
    #expect(code(.bmp, .rgb8) == .unsupported)
    #expect(code(.jpeg, .rgb8, width: 65501) == .limitExceeded)
    #expect(code(.webp, .rgb8, width: 16384) == .limitExceeded)
    #expect(code(.jpeg, .rgb8, quality: 0) == .misuse)
    #expect(code(.jpeg, .rgb8) == nil)
  }

  @Test("refuse to finish an image with missing rows, and then stay failed")
  func missingRows() throws {
    let options = EncoderOptions(format: .png, width: 4, height: 4, pixelFormat: .gray8)
    var encoder = try Encoder(options: options, budget: ImageBudget(limit: 1 << 24))
    for _ in 0..<2 {
      do {
        try encoder.finish()
        Issue.record("finished without rows")
      } catch { #expect(error.code == .misuse) }
    }
  }
}
