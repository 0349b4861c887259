import ImageCodecs
import TestSupport
import Testing

@Suite("Decoders")
struct DecoderTests {
  @Test("agree with an independent decoder on size and mean color", arguments: Fixture.names)
  func agreesWithOracle(name: String) throws {
    let fixture = Fixture.named(name)
    let pixels = try Pixels.decode(Fixture.bytes(name))
    let stored = [pixels.layout[0].width, pixels.layout[0].height]
    let shown = [fixture.width, fixture.height]
    #expect(stored == (fixture.orientation >= 5 ? shown.reversed() : shown))
    // HDR is tone-mapped, differently in each program.
    let tolerance = name.hasSuffix(".hdr") ? 12.0 : 1.5
    for (ours, theirs) in zip(pixels.mean, fixture.mean) { #expect(abs(ours - theirs) < tolerance, "\(name)") }
    #expect(!name.hasSuffix(".jpg") || !pixels.warnings.contains(.damaged))
  }

  @Test("return the same pixels for any window size", arguments: Fixture.names)
  func cutsDoNotMatter(name: String) throws {
    let bytes = Fixture.bytes(name)
    let whole = try Pixels.decode(bytes)
    for windowByteCount in [1, 7, 4096] {
      #expect(try Pixels.decode(bytes, windowByteCount: windowByteCount) == whole, "windows of \(windowByteCount)")
    }
  }

  @Test(
    "return the same reduced pixels for any window size", arguments: Fixture.names.filter { $0.hasSuffix(".jpg") })
  func cutsDoNotMatterReduced(name: String) throws {
    let bytes = Fixture.bytes(name)
    for scale in [1, 2, 4] {
      let whole = try Pixels.decode(bytes, scale: scale)
      for windowByteCount in [1, 7, 4096] {
        #expect(try Pixels.decode(bytes, windowByteCount: windowByteCount, scale: scale) == whole)
      }
    }
  }

  @Test(
    "refuse every truncation at reduced size too", arguments: ["photo-420.jpg", "photo-restart.jpg", "photo-gray.jpg"])
  func reducedTruncationsAreErrors(name: String) {
    let bytes = Fixture.bytes(name)
    for count in stride(from: 2, to: bytes.count - 2, by: 97) {
      for scale in [1, 4] {
        let budget = ImageBudget(limit: 1 << 24)
        let error = #expect(throws: CodecError.self, "\(name) cut to \(count) at \(scale)/8") {
          _ = try Pixels.decode(Array(bytes.prefix(count)), scale: scale, budget: budget)
        }
        #expect(error?.code == Self.code(ofTruncated: name, to: count), "\(name) cut to \(count) at \(scale)/8")
        #expect(budget.used == 0)
      }
    }
  }

  @Test(
    "reduce a smooth image to the means of its squares", arguments: [1, 2, 4], ["photo-gray.jpg", "photo-444.jpg"])
  func reducedIsTheMean(scale: Int, name: String) throws {
    let full = try Pixels.decode(Fixture.bytes(name))
    let reduced = try Pixels.decode(Fixture.bytes(name), scale: scale)
    let side = 8 / scale
    for plane in full.planes.indices {
      var sum = 0.0
      let (width, height) = (reduced.layout[plane].width, reduced.layout[plane].height)
      for y in 0..<height {
        for x in 0..<width {
          var mean = 0.0
          for row in 0..<side {
            for column in 0..<side {
              mean += Double(full.sample(x: x * side + column, y: y * side + row, plane: plane))
            }
          }
          sum += abs(mean / Double(side * side) - Double(reduced.sample(x: x, y: y, plane: plane)))
        }
      }
      // At 1/8 the two differ only by rounding; at larger scales the transform keeps more of the high frequencies.
      #expect(sum / Double(width * height) < (scale == 1 ? 0.6 : 4))
    }
  }

  /// Returns the number of bytes at the end that contain no part of the image.
  ///
  /// They are the end-of-image marker of a baseline JPEG, GIF's end code and trailer and the frames after its first,
  /// the end mark of a run-length coded BMP, TGA's trailer, PNG's end chunk, the values of TIFF's last tags and the
  /// padding of a Group 4 row, an icon's mask, the last digits of a text, RIFF's padding.
  private static func inessentialByteCount(name: String, byteCount: Int) -> Int {
    switch name.split(separator: ".").last {
    case "jpg" where !name.contains("progressive"): 2
    case "gif": name == "animated-transparent.gif" ? byteCount * 3 / 4 : 4
    case "tga": 27
    case "bmp" where name == "rle8.bmp": 2
    case "tiff": 4
    case "ico" where name == "icon-bitmap.ico": 8 * 29  // its mask, which alpha makes unnecessary
    case "ppm" where name == "text.ppm": 4
    case "png": 12
    case "ico" where name == "icon-png.ico": 12
    default: 1
    }
  }

  /// Returns the expected error code for a truncated file.
  ///
  /// The format of very few bytes is unknown.
  private static func code(ofTruncated name: String, to count: Int) -> CodecError.Code {
    ImageFormat.sniff(Array(Fixture.bytes(name).prefix(count)).span.bytes) == nil ? .unsupported : .truncated
  }

  @Test("refuse every truncation and release all memory", arguments: Fixture.names)
  func truncationsAreErrors(name: String) {
    let bytes = Fixture.bytes(name)
    let inessential = Self.inessentialByteCount(name: name, byteCount: bytes.count)
    // libtiff and libheif do not distinguish the end of a file from damage, so every length is tried.
    let isTriedAtAllLengths = ["tiff", "avif", "heic"].contains(name.split(separator: ".").last)
    let step = isTriedAtAllLengths ? 1 : max(1, bytes.count / 61)
    for count in stride(from: 1, to: bytes.count - inessential, by: step) {
      let budget = ImageBudget(limit: 1 << 30)
      let error = #expect(throws: CodecError.self, "\(name) cut to \(count) of \(bytes.count)") {
        _ = try Pixels.decode(Array(bytes.prefix(count)), budget: budget)
      }
      #expect(error?.code == Self.code(ofTruncated: name, to: count), "\(name) cut to \(count) of \(bytes.count)")
      #expect(budget.used == 0)
    }
  }

  @Test("never crash on flipped bits and release all memory", arguments: Fixture.names)
  func bitFlipsAreHarmless(name: String) {
    let bytes = Fixture.bytes(name)
    var random = SeededGenerator(seed: UInt64(bytes.count))
    for _ in 0..<40 {
      var damaged = bytes
      for _ in 0...random.next() % 4 {
        damaged[Int(random.next() % UInt64(bytes.count))] ^= 1 << UInt8(random.next() % 8)
      }
      let budget = ImageBudget(limit: 64 << 20)
      let limits = CodecLimits(maxPixels: 4_000_000, maxBufferedPixels: 4_000_000, maxScans: 100)
      let scale = name.hasSuffix(".jpg") ? 1 << Int(random.next() % 4) : 8
      _ = try? Pixels.decode(damaged, scale: scale, budget: budget, limits: limits)
      #expect(budget.used == 0)
    }
  }

  @Test("stay within a budget or report that they cannot", arguments: Fixture.names)
  func budgetHolds(name: String) {
    for limit in [0, 4 << 10, 64 << 10, 512 << 10] {
      let budget = ImageBudget(limit: limit)
      do {
        _ = try Pixels.decode(Fixture.bytes(name), budget: budget)
      } catch {
        #expect(error.code == .outOfMemory, "\(name): \(error)")
      }
      #expect(budget.peak <= limit)
      #expect(budget.used == 0)
    }
  }

  @Test("never charge more memory than they estimated", arguments: Fixture.names)
  func estimateHolds(name: String) throws {
    let bytes = Fixture.bytes(name)
    let budget = ImageBudget(limit: 1 << 30)
    let sniffed = ImageFormat.sniff(bytes.span.bytes)
    let format = try #require(sniffed)
    var decoder = try Decoder(
      format: format, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0), budget: budget)
    let header = try decoder.readHeader(bytes.span.bytes, isLast: true)
    #expect(header.value)
    let estimate = try decoder.estimatedByteCount(scale: 8)
    _ = try decoder.start(scale: 8)
    var offset = header.consumedByteCount
    while true {
      let progress = try decoder.read(bytes.span.bytes.extracting(droppingFirst: offset), isLast: true)
      offset += progress.consumedByteCount
      if progress.value == .done { break }
    }
    #expect(budget.peak > 0 && UInt64(budget.peak) <= estimate)
  }

  @Test("read the orientation of every container", arguments: ["jpg", "png", "webp"], 1...8)
  func orientation(container: String, value: Int) throws {
    let bytes = Fixture.bytes("orientation-\(value).\(container)")
    let sniffed = ImageFormat.sniff(bytes.span.bytes)
    let format = try #require(sniffed)
    var decoder = try Decoder(
      format: format, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0),
      budget: ImageBudget(limit: 1 << 24))
    _ = try decoder.readHeader(bytes.span.bytes, isLast: true)
    #expect(decoder.header.orientation.rawValue == value)
  }

  @Test("decode JPEG at reduced size to the same image", arguments: [1, 2, 4, 8])
  func reducedJPEG(scale: Int) throws {
    let name = "photo-420.jpg"
    let pixels = try Pixels.decode(Fixture.bytes(name), scale: scale)
    let fixture = Fixture.named(name)
    #expect(pixels.layout[0].width == (fixture.width * scale + 7) / 8)
    #expect(pixels.layout[0].height == (fixture.height * scale + 7) / 8)
    for (ours, theirs) in zip(pixels.mean, fixture.mean) { #expect(abs(ours - theirs) < 3) }
  }

  @Test("return 32 rows of a small JPEG at once, and those before a failure")
  func smallJPEGStrips() throws {
    let file = Fixture.bytes("photo-420.jpg")
    #expect(try Self.strips(of: file).rowCounts == [32, 32, 32, 32, 32])
    let cut = try stride(from: 2000, to: file.count, by: 500).map { try Self.strips(of: Array(file.prefix($0))) }
    for (rowCounts, failure) in cut {
      #expect(failure?.code == .truncated)
      #expect(rowCounts.dropLast().allSatisfy { $0 == 32 })
    }
    #expect(Set(cut.compactMap(\.rowCounts.last)) == [16, 32])
  }

  @Test("return the rows of a small JPEG that have arrived when its upload pauses")
  func pausedJPEGStrips() throws {
    let file = Fixture.bytes("photo-420.jpg")
    let counts = try stride(from: 2000, to: file.count, by: 500).map { byteCount in
      try Self.strips(of: Array(file.prefix(byteCount)), isLast: false).rowCounts.reduce(0, +)
    }
    let whole = try stride(from: 2000, to: file.count, by: 500).map { byteCount in
      try Self.strips(of: Array(file.prefix(byteCount))).rowCounts.reduce(0, +)
    }
    // The decoder keeps some bytes back, as it looks ahead.
    #expect(zip(counts, whole).allSatisfy { ($1 - 32...$1).contains($0) })
    #expect(Set(counts.map { $0 % 32 }) == [0, 16])
  }

  /// Returns the numbers of rows of the first plane in the strips of a JPEG, and the error behind them.
  private static func strips(of file: [UInt8], isLast: Bool = true) throws -> (rowCounts: [Int], failure: CodecError?) {
    var decoder = try Decoder(
      format: .jpeg, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0),
      budget: ImageBudget(limit: 1 << 24))
    var offset = try decoder.readHeader(file.span.bytes, isLast: true).consumedByteCount
    _ = try decoder.start(scale: 8)
    var rowCounts: [Int] = []
    do throws(CodecError) {
      while true {
        let progress = try decoder.read(file.span.bytes.extracting(droppingFirst: offset), isLast: isLast)
        offset += progress.consumedByteCount
        if progress.value == .done || progress.value == .needsInput { return (rowCounts, nil) }
        decoder.withStrip { rowCounts.append($0.plane(0).rowCount) }
      }
    } catch { return (rowCounts, error) }
  }

  @Test("skip the smoothing of a WebP's block edges where allowed, and change nothing else")
  func unsmoothedWebP() throws {
    let bytes = Fixture.bytes("photo.webp")
    let (smooth, rough) = (try Pixels.decode(bytes), try Pixels.decode(bytes, maySkipSmoothing: true))
    #expect(smooth != rough)
    var changes = [0, 0]
    for y in 0..<smooth.layout[0].height {
      for x in 0..<smooth.layout[0].width where smooth.sample(x: x, y: y) != rough.sample(x: x, y: y) {
        changes[x % 16 == 0 || x % 16 == 15 || y % 16 == 0 || y % 16 == 15 ? 0 : 1] += 1
      }
    }
    // 60 of 256 samples of a macroblock are on its edge.
    #expect(changes[0] * 196 > changes[1] * 60)
    for (ours, theirs) in zip(rough.mean, smooth.mean) { #expect(abs(ours - theirs) < 0.5) }
    for name in ["photo-420.jpg", "photo.png", "lossless.webp"] {
      let bytes = Fixture.bytes(name)
      #expect(try Pixels.decode(bytes) == Pixels.decode(bytes, maySkipSmoothing: true))
    }
  }

  @Test("know the sizes of profiles and metadata without copying them", arguments: Fixture.names)
  func attachmentSizes(name: String) throws {
    let bytes = Fixture.bytes(name)
    let sniffed = ImageFormat.sniff(bytes.span.bytes)
    let format = try #require(sniffed)
    var limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0)
    limits.keepsMetadata = true
    var decoder = try Decoder(format: format, limits: limits, budget: ImageBudget(limit: 1 << 28))
    _ = try decoder.readHeader(bytes.span.bytes, isLast: true)
    let sizes = (profile: decoder.profileByteCount, metadata: decoder.metadataByteCount)
    let (profile, metadata) = (decoder.profile, decoder.metadata)
    #expect(sizes.profile == profile.count && sizes.metadata == metadata.byteCount)
  }

  @Test("refuse an image above the pixel limit, naming the limit and the value")
  func pixelLimit() throws {
    let limits = CodecLimits(maxPixels: 1000, maxBufferedPixels: 1000, maxScans: 100)
    for name in ["photo-420.jpg", "photo.png", "photo.webp", "photo.gif"] {
      let error = #expect(throws: CodecError.self) { _ = try Pixels.decode(Fixture.bytes(name), limits: limits) }
      #expect(error?.code == .limitExceeded)
      #expect(error?.message.contains("1000") == true)
      let fixture = Fixture.named(name)
      let limit = CodecError.Limit(
        name: name == "photo.gif" ? "max_buffered_pixels" : "max_pixels",  // the GIF is interlaced
        limit: 1000, value: UInt64(fixture.width * fixture.height))
      #expect(error?.limit == limit)
    }
  }

  @Test("stop a JPEG with more scans than the limit")
  func scanLimit() throws {
    let limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 2)
    let error = #expect(throws: CodecError.self) {
      _ = try Pixels.decode(Fixture.bytes("photo-progressive.jpg"), limits: limits)
    }
    #expect(error?.code == .limitExceeded)
    #expect(error?.limit == CodecError.Limit(name: "max_scans", limit: 2, value: 3))
  }

  @Test(
    "warn that only the first frame was decoded if there is a second",
    arguments: [("animated-transparent.gif", true), ("photo.gif", false), ("frame-within.gif", false)])
  func firstFrame(name: String, isAnimated: Bool) throws {
    for windowByteCount in [1, Int.max] {
      let pixels = try Pixels.decode(Fixture.bytes(name), windowByteCount: windowByteCount)
      #expect(pixels.warnings == (isAnimated ? [.firstFrameOnly] : []))
    }
  }

  @Test("accept a PNG whose compressed data has a wrong checksum, however its bytes arrive", arguments: [1, 50, .max])
  func wrongDataChecksum(windowByteCount: Int) throws {
    let file = Container.png(
      width: 2, height: 2, bitDepth: 8, colorType: 0, rows: [0, 10, 20, 0, 30, 40])
    var data = Array(file[41..<file.count - 16])
    data[data.count - 1] ^= 1
    let bytes = file.prefix(33) + Container.pngChunk("IDAT", data) + Container.pngChunk("IEND", [])
    let pixels = try Pixels.decode(Array(bytes), windowByteCount: windowByteCount)
    #expect(pixels.planes == [[10, 20, 30, 40]] && pixels.warnings == [.damaged])
  }

  @Test(
    "use the bits of a PNG's transparent color that its samples have",
    arguments: [
      (1, 0, [0x00, 0xFF], [0, 0x40], [255, 0]), (4, 0, [0x0F, 0xF3], [0, 0x3F], [0, 255]),
      (8, 0, [0x12, 0x80], [0, 0x80, 0x12], [0, 255]),
      (8, 2, [0xFF, 1, 0xFF, 2, 0xFF, 3], [0, 1, 2, 3, 9, 9, 9], [0, 255]),
    ] as [(UInt8, UInt8, [UInt8], [UInt8], [UInt8])])
  func transparentColor(bitDepth: UInt8, colorType: UInt8, key: [UInt8], row: [UInt8], alpha: [UInt8]) throws {
    let opaque = Container.png(width: 2, height: 1, bitDepth: bitDepth, colorType: colorType, rows: row)
    let plane = try Pixels.decode(Container.png(opaque, adding: [("tRNS", key)])).planes[0]
    #expect([plane[3], plane[7]] == alpha, "\(plane)")
  }

  @Test("refuse a PNG whose checksum is wrong")
  func wrongChecksum() {
    let error = #expect(throws: CodecError.self) { _ = try Pixels.decode(Fixture.bytes("pngsuite-xcsn0g01.png")) }
    #expect(error?.code == .corrupt)
  }
}
