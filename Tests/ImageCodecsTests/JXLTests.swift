import CCodecs
import ImageCodecs
import TestSupport
import Testing

/// Files with several frames, written by Tests/Fuzz/jxl_seeds.c.
@Suite("JPEG XL", .enabled(if: ImageFormat.jxl.isDecodable), .timeLimit(.minutes(15)))
struct JXLTests {
  private static func refusal(_ name: String, limits: CodecLimits? = nil) -> CodecError? {
    let budget = ImageBudget(limit: 384 << 20)
    let limits = limits ?? CodecLimits(maxPixels: 0, maxBufferedPixels: 100_000_000, maxScans: 100)
    let error = #expect(throws: CodecError.self) {
      try Pixels.decode(Fixture.bytes(name), budget: budget, limits: limits)
    }
    #expect(budget.used == 0 && budget.peak < 16 << 20)
    return error
  }

  @Test("composes layers, and charges the memory of the stored ones")
  func layers() throws {
    let bytes = Fixture.bytes("layers.jxl")
    let whole = try Pixels.decode(bytes)
    #expect(whole.layout[0].width == 100 && whole.warnings == [.firstFrameOnly])
    // Four layers with alpha 128, three of them smaller than the image.
    #expect(whole.sample(x: 10, y: 10, channel: 3) == 239 && whole.sample(x: 90, y: 90, channel: 3) == 128)
    for windowByteCount in [1, 7, 4096] {
      #expect(try Pixels.decode(bytes, windowByteCount: windowByteCount) == whole)
    }
    for count in stride(from: 1, to: bytes.count - 1, by: 97) {
      #expect(throws: CodecError.self) { try Pixels.decode(Array(bytes.prefix(count))) }
    }
  }

  @Test("with a frame far larger than the image is refused before the frame is decoded")
  func vastFrame() {
    let exhausted = Self.refusal("vast-frame.jxl")
    #expect(exhausted?.code == .outOfMemory && exhausted?.limit?.name == "image_memory_limit")
    #expect(exhausted?.limit?.limit == 384 << 20 && exhausted?.limit?.value ?? 0 > 384 << 20)
    let limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 1_000_000, maxScans: 100)
    let error = Self.refusal("vast-frame.jxl", limits: limits)
    #expect(error?.code == .limitExceeded && error?.message.contains("max_buffered_pixels") == true)
    #expect(error?.limit == CodecError.Limit(name: "max_buffered_pixels", limit: 1_000_000, value: 16_000_000))
  }

  @Test("with too many layers, or layers that are too large, is refused")
  func manyLayers() {
    let error = Self.refusal("too-many-layers.jxl")
    #expect(error?.code == .limitExceeded && error?.message.contains("64") == true)
    #expect(error?.limit == CodecError.Limit(name: "max_layers", limit: 64, value: 65))
    // 60 layers of 160,000 pixels each.
    let limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 5_000_000, maxScans: 100)
    #expect(Self.refusal("many-layers.jxl", limits: limits)?.limit?.name == "max_frame_pixels")
  }

  @Test("can be cancelled between layers")
  func pauses() throws {
    let bytes = Fixture.bytes("many-layers.jxl")
    var decoder = try Decoder(
      format: .jxl, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0),
      budget: ImageBudget(limit: 1 << 28))
    let header = try decoder.readHeader(bytes.span.bytes, isLast: true)
    #expect(header.value)
    let layout = try decoder.start(scale: 8)
    var consumed = header.consumedByteCount
    var (pauses, rows) = (0, 0)
    while true {
      let progress = try decoder.read(bytes.span.bytes.extracting(droppingFirst: consumed), isLast: true)
      consumed += progress.consumedByteCount
      guard progress.value == .stripReady else { break }
      decoder.withStrip { strip in
        let count = strip.plane(0).rowCount
        pauses += count == 0 ? 1 : 0
        rows += count
      }
    }
    #expect(pauses >= 15 && rows == layout.planes[0].height)
  }

  @Test("prints nothing about a file's errors")
  func silence() throws {
    var damaged = Fixture.bytes("photo.jxl")
    for index in stride(from: damaged.count / 2, to: damaged.count, by: 3) { damaged[index] ^= 0x5A }
    let printed = try standardError { #expect(throws: CodecError.self) { try Pixels.decode(damaged) } }
    #expect(!printed.contains("jxl"))
  }

  /// Returns a box whose size is written with 64 bits if `isWide`.
  private static func box(_ type: String, _ body: [UInt8], isWide: Bool = false) -> [UInt8] {
    let count = body.count + (isWide ? 16 : 8)
    let size = (0..<(isWide ? 8 : 4)).reversed().map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }
    return (isWide ? [0, 0, 0, 1] + Array(type.utf8) + size : size + Array(type.utf8)) + body
  }

  @Test("in a container decodes like its codestream", arguments: [false, true])
  func containers(isWide: Bool) throws {
    let bare = Fixture.bytes("photo.jxl")
    let expected = try Pixels.decode(bare)
    let start =
      Self.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + Self.box("ftyp", Array("jxl \0\0\0\0jxl ".utf8))
      + Self.box("Exif", [UInt8](repeating: 0, count: 300), isWide: isWide)
    let parts = [bare[..<1], bare[1..<700], bare[700...]].enumerated().flatMap { index, part in
      Self.box("jxlp", [index == 2 ? 0x80 : 0, 0, 0, UInt8(index)] + part, isWide: isWide)
    }
    let files = [start + Self.box("jxlc", bare, isWide: isWide), start + parts + Self.box("xml ", [1, 2, 3])]
    for (file, windowByteCount) in files.flatMap({ file in [1, 7, 4096].map { (file, $0) } }) {
      #expect(try Pixels.decode(file, windowByteCount: windowByteCount) == expected)
    }
  }

  @Test(
    "that fails in slices is decoded once more as a whole", arguments: ["photo.jxl", "alpha-lossless.jxl", "pq.jxl"])
  func wholeAfterSlices(name: String) throws {
    let bytes = Fixture.bytes(name)
    let expected = try Pixels.decode(bytes)
    var decoder = try Decoder(
      format: .jxl, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0),
      budget: ImageBudget(limit: 1 << 30))
    _ = try decoder.readHeader(bytes.span.bytes, isLast: true)
    let charged = try decoder.estimatedByteCount(scale: 8)
    for slice in 1...5 {
      for windowByteCount in [7, 4096, .max] {
        let budget = ImageBudget(limit: 1 << 30)
        ccodecs_jxl_fail_slice(UInt32(slice))
        #expect(try Pixels.decode(bytes, windowByteCount: windowByteCount, budget: budget) == expected)
        #expect(budget.used == 0 && budget.peak <= charged)
      }
    }
    ccodecs_jxl_fail_slice(0)
  }
}
