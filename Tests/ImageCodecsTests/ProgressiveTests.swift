#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif
import ImageCodecs
import TestSupport
import Testing

@Suite("Progressive JPEGs")
struct ProgressiveTests {
  /// The same coefficients in one scan and in 70 scans, written by jpegtran.
  private static let (single, scans) = ("photo-420.jpg", "photo-progressive-scans.jpg")

  /// Returns the image with `count` useless bytes after the last unit of its last scan.
  private static func padded(_ count: Int) -> [UInt8] {
    let bytes = Fixture.bytes("photo-progressive.jpg")
    return bytes.dropLast(2) + [UInt8](repeating: 0xAA, count: count) + bytes.suffix(2)
  }

  @Test("return the same rows as one scan of the same coefficients, for any window size", arguments: 1...8)
  func sameCoefficients(scale: Int) throws {
    let expected = try Pixels.decode(Fixture.bytes(Self.single), scale: scale)
    let bytes = Fixture.bytes(Self.scans)
    for windowByteCount in [1, 333, 4096, .max] {
      let pixels = try Pixels.decode(bytes, windowByteCount: windowByteCount, scale: scale)
      #expect(pixels == expected, "windows of \(windowByteCount)")
    }
  }

  @Test("charge a few KiB per scan, and no coefficients")
  func memory() throws {
    func peak(_ name: String) throws -> Int {
      let budget = ImageBudget(limit: 1 << 24)
      _ = try Pixels.decode(Fixture.bytes(name), budget: budget)
      return budget.peak
    }
    #expect(try peak("photo-progressive.jpg") > 1 << 10)
    #expect(try peak(Self.scans) - peak("photo-progressive.jpg") < 61 * 16 << 10)
  }

  @Test("return the same rows when they spill to a file because the bytes exceed the coefficients")
  func heldInFile() throws {
    let count = 4 << 20
    let bytes = Self.padded(count)
    for (spill, isHeld) in [(SpillDirectory.system, false), (nil, true)] {
      let limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 100, spill: spill)
      for scale in [2, 8] {
        let budget = ImageBudget(limit: 1 << 24)
        let pixels = try Pixels.decode(
          bytes, windowByteCount: 100_000, scale: scale, budget: budget, limits: limits)
        var expected = try Pixels.decode(Fixture.bytes("photo-progressive.jpg"), scale: scale)
        expected.warnings = pixels.warnings
        #expect(pixels == expected && pixels.warnings == [.damaged])
        #expect(isHeld ? budget.peak > 440_000 : budget.peak < 400_000, "\(budget.peak)")
      }
    }
  }

  @Test("buffer no more of an endless scan than its units can take")
  func endless() throws {
    let bytes = Fixture.bytes("photo-progressive.jpg").dropLast(2) + [UInt8](repeating: 0xAA, count: 1 << 20)
    let budget = ImageBudget(limit: 1 << 24)
    var decoder = try Decoder(
      format: .jpeg, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 100), budget: budget)
    var offset = try decoder.readHeader(bytes.span.bytes, isLast: false).consumedByteCount
    _ = try decoder.start(scale: 8)
    offset += try decoder.read(bytes.span.bytes.extracting(droppingFirst: offset), isLast: false).consumedByteCount
    #expect(offset == bytes.count)
    let used = budget.used
    let more = [UInt8](repeating: 0xAA, count: 1 << 20)
    for _ in 0..<64 { _ = try decoder.read(more.span.bytes, isLast: false) }
    #expect(budget.used == used && used < 1 << 20)
  }

  @Test("refuse scans whose total size far exceeds that of the coefficients")
  func tooManyBytes() throws {
    let bytes = Fixture.bytes("photo-progressive.jpg")
    let last = try #require(bytes.indices.dropLast(2).last { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA })
    let scan = bytes[last..<bytes.count - 2] + [UInt8](repeating: 0xAA, count: 400_000)
    let error = #expect(throws: CodecError.self) {
      _ = try Pixels.decode(bytes.dropLast(2) + Array(repeatElement(scan, count: 8).joined()) + [0xFF, 0xD9])
    }
    #expect(error?.code == .limitExceeded)
    #expect(error?.limit?.name == "max_scan_bytes")
  }

  @Test("report that there is no room for their bytes")
  func noRoom() {
    let limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 100)
    let budget = ImageBudget(limit: 1 << 18)
    let error = #expect(throws: CodecError.self) {
      _ = try Pixels.decode(Self.padded(1 << 20), windowByteCount: 4096, budget: budget, limits: limits)
    }
    #expect(error?.code == .outOfMemory)
    #expect(error?.message.contains(/must be buffered after \d{5,} bytes/) == true)
    #expect(budget.used == 0)
  }

  @Test("do not blame the image if the disk fails")
  func failingDisk() throws {
    let path = "/var/tmp/image-worker-test-\(UInt64.random(in: 0...UInt64.max))"
    try #require(mkdir(path, 0o700) == 0)
    let spill = try #require(SpillDirectory(path: path))
    try #require(rmdir(path) == 0)
    let limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 100, spill: spill)
    let error = #expect(throws: CodecError.self) {
      _ = try Pixels.decode(Self.padded(1 << 20), windowByteCount: 4096, limits: limits)
    }
    #expect(error?.code == .outOfResources)
  }

  @Test("return the rows before a bad code, then the error")
  func badCode() throws {
    var bytes = Fixture.bytes(Self.scans)
    // A code of ones is invalid. The first scan starts after the first SOS, and its blocks are read row by row.
    let start = try #require(bytes.indices.first { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA }) + 14 + 300
    for index in start..<start + 8 { bytes[index] = index % 2 == start % 2 ? 0xFF : 0 }
    let budget = ImageBudget(limit: 1 << 24)
    var decoder = try Decoder(
      format: .jpeg, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0), budget: budget)
    var offset = try decoder.readHeader(bytes.span.bytes, isLast: true).consumedByteCount
    _ = try decoder.start(scale: 8)
    var stripCount = 0
    let error = #expect(throws: CodecError.self) {
      while true {
        let progress = try decoder.read(bytes.span.bytes.extracting(droppingFirst: offset), isLast: true)
        offset += progress.consumedByteCount
        stripCount += 1
      }
    }
    #expect(error?.code == .corrupt && stripCount > 0)
  }
}
