import ImageCodecs
import ImageKernels
import Testing

@Suite("Pixel converter")
struct PixelConverterTests {
  private static func convert(
    _ row: [UInt8], from input: PixelFormat, to output: PixelFormat, background: [UInt8] = [255, 255, 255]
  ) throws -> [UInt8] {
    let converter = try PixelConverter(
      from: input, to: output, width: row.count / input.pixelByteCount, background: background,
      budget: ImageBudget(limit: 1 << 20))
    return converter.convert(try buffer([row]).rows(count: 1)).contents[0]
  }

  /// Returns the bytes of 16-bit samples.
  private static func bytes(_ samples: [UInt16]) -> [UInt8] {
    samples.flatMap { sample in withUnsafeBytes(of: sample) { Array($0) } }
  }

  @Test("gray becomes RGB, and black darkens CMYK")
  func colors() throws {
    #expect(try Self.convert([7, 200], from: .gray8, to: .rgb8) == [7, 7, 7, 200, 200, 200])
    #expect(try Self.convert([255, 128, 0, 255], from: .cmyk8, to: .rgb8) == [255, 128, 0])
    #expect(try Self.convert([255, 255, 255, 0], from: .cmyk8, to: .rgb8) == [0, 0, 0])
  }

  @Test("transparent pixels become the background, opaque ones stay unchanged")
  func flattens() throws {
    let row: [UInt8] = [10, 20, 30, 0, 10, 20, 30, 255]
    #expect(try Self.convert(row, from: .rgba8, to: .rgb8, background: [1, 2, 3]) == [1, 2, 3, 10, 20, 30])
  }

  @Test("16-bit samples are rounded to 8 bits")
  func narrows() throws {
    let samples = Self.bytes([0, 128, 129, 257, 65535, 32768])
    #expect(try Self.convert(samples, from: .rgb16, to: .rgb8) == [0, 0, 1, 1, 255, 128])
  }

  @Test("alpha is multiplied in and divided out")
  func alpha() throws {
    let budget = ImageBudget(limit: 1 << 20)
    let row: [UInt8] = [200, 100, 0, 255, 200, 100, 0, 128, 200, 100, 0, 0]
    let premultiplier = try Premultiplier(.rgba8, width: 3, rowCount: 1, budget: budget)
    let divider = try PixelConverter(from: .premultipliedRGBA16, to: .rgba8, width: 3, budget: budget)
    let result = divider.convert(premultiplier.premultiply(try buffer([row]).rows(count: 1))).contents[0]
    #expect(result == [200, 100, 0, 255, 200, 100, 0, 128, 0, 0, 0, 0])
  }

  @Test("unsupported conversions are a misuse error")
  func unknown() {
    let error = #expect(throws: CodecError.self) {
      try PixelConverter(from: .rgb8, to: .cmyk8, width: 1, budget: ImageBudget(limit: 1 << 20))
    }
    #expect(error?.code == .misuse)
  }

  @Test("rows that are too short are refused")
  func shortRows() async {
    await #expect(processExitsWith: .failure) {
      let converter = try PixelConverter(
        from: .gray8, to: .rgb8, width: 3, budget: ImageBudget(limit: 1 << 20))
      _ = converter.convert(try buffer([[1, 2]]).rows(count: 1))
    }
  }
}
