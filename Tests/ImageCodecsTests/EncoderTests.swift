import ImageCodecs
import TestSupport
import Testing

@Suite("Encoders")
struct EncoderTests {
  /// Encodes a whole picture given as one strip of each plane in portions of `rowCount` rows.
  private func encode(_ pixels: Pixels, _ options: EncoderOptions, rowCount: Int, budget: PictureBudget) throws
    -> [UInt8]
  {
    var encoder = try Encoder(options: options, budget: budget)
    let buffer = try PixelBuffer(byteCount: 1000, budget: budget)
    var output: [UInt8] = []
    func drain() {
      while true {
        let count = encoder.read(into: buffer)
        guard count > 0 else { return }
        output += UnsafeRawBufferPointer(start: buffer.base, count: count)
      }
    }
    var first = 0
    while first < pixels.layout[0].height {
      try withPlanes(pixels.planes) { bases in
        let rows = bases.enumerated().map { index, base in
          let layout = pixels.layout[index]
          let stride = layout.width * pixels.format.pixelByteCount
          let count = max(0, min(rowCount, layout.height - first))
          return Strip.Rows(base: base + first * stride, rowStride: stride, rowCount: count)
        }
        try encoder.write(
          rows.count == 3
            ? Strip(format: pixels.format, planes: (rows[0], rows[1], rows[2]))
            : Strip(format: pixels.format, rows: rows[0]))
      }
      first += rowCount
      drain()
    }
    try encoder.finish()
    drain()
    return output
  }

  private func withPlanes(_ planes: [[UInt8]], _ body: ([UnsafeRawPointer]) throws -> Void) rethrows {
    if planes.count == 1 {
      try planes[0].withUnsafeBytes { try body([$0.baseAddress!]) }
    } else {
      try planes[0].withUnsafeBytes { y in
        try planes[1].withUnsafeBytes { cb in
          try planes[2].withUnsafeBytes { cr in
            try body([y.baseAddress!, cb.baseAddress!, cr.baseAddress!])
          }
        }
      }
    }
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var fixture: String
    var format: ImageFormat
    var subsampling = EncoderOptions.ChromaSubsampling.quarter
    var tolerance: Double
    var testDescription: String { "\(fixture) as \(format)" }
  }

  @Test(
    "write what decodes to the same picture, however the rows are cut",
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
    let budget = PictureBudget(limit: 1 << 26)
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

  @Test("refuse pixels and sizes that the format can't hold")
  func refusals() {
    func code(_ format: ImageFormat, _ pixels: PixelFormat, width: Int = 10, quality: Int = 80) -> CodecError.Code? {
      let options = EncoderOptions(format: format, width: width, height: 10, pixelFormat: pixels, quality: quality)
      do {
        _ = try Encoder(options: options, budget: PictureBudget(limit: 1 << 24))
        return nil
      } catch { return error.code }
    }
    #expect(code(.jpeg, .rgba8) == .unsupported)
    #expect(code(.png, .ycc8) == .unsupported)
    #expect(code(.gif, .rgb8) == .unsupported)
    #expect(code(.jpeg, .rgb8, width: 65501) == .limitExceeded)
    #expect(code(.webp, .rgb8, width: 16384) == .limitExceeded)
    #expect(code(.jpeg, .rgb8, quality: 0) == .misuse)
    #expect(code(.jpeg, .rgb8) == nil)
  }

  @Test("refuse to finish a picture that lacks rows, and then stay failed")
  func missingRows() throws {
    let options = EncoderOptions(format: .png, width: 4, height: 4, pixelFormat: .gray8)
    var encoder = try Encoder(options: options, budget: PictureBudget(limit: 1 << 24))
    for _ in 0..<2 {
      do {
        try encoder.finish()
        Issue.record("finished without rows")
      } catch { #expect(error.code == .misuse) }
    }
  }
}
