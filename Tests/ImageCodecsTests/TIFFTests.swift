import ImageCodecs
import TestSupport
import Testing

@Suite("TIFF", .enabled(if: ImageFormat.tiff.isDecodable), .timeLimit(.minutes(15)))
struct TIFFTests {
  private static func refusal(_ bytes: [UInt8]) -> CodecError? {
    let budget = ImageBudget(limit: 1 << 30)
    let error = #expect(throws: CodecError.self) { try Pixels.decode(bytes, budget: budget) }
    #expect(budget.used == 0 && budget.peak < 4 << 20)
    return error
  }

  @Test(
    "with a compression whose memory use the file controls is refused", arguments: [34925, 34887, 34661, 50001])
  func compressions(scheme: Int) {
    let bytes = Container.tiff(
      width: 8, height: 8, photometric: 1, compression: scheme, blocks: [[UInt8](repeating: 0, count: 64)])
    #expect(Self.refusal(bytes)?.code == .unsupported)
  }

  @Test("has nothing of the memory in pixels that its compression leaves out")
  func unwritten() throws {
    // T.6 codes one bit of each pixel, whatever the number of its samples is.
    let bytes = Container.tiff(
      width: 512, height: 4, bitDepth: 1, photometric: 2, sampleCount: 3, compression: 4,
      blocks: [[0xF0, 0x01, 0x00, 0x10]])
    for level in [UInt8(0xFF), 0x0F] {
      let used = (1...64).map { [UInt8](repeating: level, count: $0 * 16) }
      #expect(used.count == 64)
      #expect(try Pixels.decode(bytes).mean == [0, 0, 0])
    }
  }

  @Test("with 60,000 samples per pixel is refused, with nine it is accepted")
  func samples() throws {
    func file(_ count: Int) -> [UInt8] {
      Container.tiff(
        width: 4, height: 4, bitDepth: 8, sampleCount: count, photometric: 1,
        samples: [UInt8](repeating: 9, count: 16 * count))
    }
    let error = Self.refusal(file(60_000))
    #expect(error?.code == .limitExceeded && error?.message.contains("64") == true)
    #expect(error?.limit == CodecError.Limit(name: "max_samples_per_pixel", limit: 64, value: 60_000))
    #expect(try Pixels.decode(file(9)).mean == [9, 9, 9])
  }

  /// 3000 strips of one row and half a megabyte each would be 1.5 GB.
  @Test("with a palette has its alpha in 0 to 255")
  func paletteAlpha() throws {
    let colorMap = (0..<48).map { UInt16($0 % 16 == 1 ? 0xFFFF : 0) }
    let pixels = try Pixels.decode(
      Container.tiff(
        width: 2, height: 1, bitDepth: 4, sampleCount: 2, photometric: 3, samples: [0x1F, 0x18], alpha: true,
        colorMap: colorMap))
    #expect(pixels.format == .rgba8)
    #expect(Array(pixels.planes[0].prefix(8)) == [255, 255, 255, 255, 255, 255, 255, 136])
  }

  @Test("with tags that share their values is charged for each")
  func sharedTags() throws {
    func peak(_ count: Int, limit: Int) throws -> Int {
      let budget = ImageBudget(limit: limit)
      let bytes = Container.tiff(
        width: 256, height: 256, bitDepth: 8, sampleCount: 1, photometric: 1,
        samples: [UInt8](repeating: 9, count: 65_536), sharedTagCount: count)
      defer { #expect(budget.used == 0) }
      #expect(try Pixels.decode(bytes, budget: budget).mean == [9, 9, 9])
      return budget.peak
    }
    let (few, many) = (try peak(1, limit: 1 << 30), try peak(400, limit: 1 << 30))
    #expect(many - few > 400 * 65_536 - (1 << 19))
    let error = #expect(throws: CodecError.self) { try peak(400, limit: 16 << 20) }
    #expect(error?.code == .outOfMemory)
  }

  @Test("may share its strips, within limits")
  func sharedStrips() throws {
    func file(count: Int, byteCount: Int) -> [UInt8] {
      Container.tiff(
        width: 100, height: count, photometric: 1, rowsPerStrip: 1, compression: 1,
        blocks: [[UInt8](repeating: 90, count: byteCount)], blockCount: count)
    }
    #expect(try Pixels.decode(file(count: 300, byteCount: 100)).mean == [90, 90, 90])
    #expect(Self.refusal(file(count: 3000, byteCount: 500_000))?.limit?.name == "max_block_bytes")
  }

  /// TIFF 6.0 forbids it, and some writers do it.
  @Test("with PackBits whose packets cross rows keeps every sample", arguments: [1, 3])
  func crossingPackets(rowsPerStrip: Int) throws {
    let six: [UInt8] = [251, 9, 128, 5, 1, 2, 3, 4, 5, 6]
    let one: [UInt8] = [253, 7]
    let pixels = try Pixels.decode(
      Container.tiff(
        width: 4, height: 6, photometric: 1, rowsPerStrip: rowsPerStrip, compression: 32773,
        blocks: rowsPerStrip == 1 ? [one, one, one, one, one, one] : [six, six]))
    let samples: [UInt8] = rowsPerStrip == 1 ? [7, 7, 7, 7] : [9, 9, 9, 9, 9, 9, 1, 2, 3, 4, 5, 6]
    for y in 0..<6 {
      for x in 0..<4 {
        #expect(pixels.color(x: x, y: y)[0] == Double(samples[(4 * y + x) % samples.count]))
      }
    }
  }

  @Test("whose strips share a JPEG of many scans is refused")
  func sharedScans() throws {
    var jpeg = Fixture.bytes("photo-progressive-scans.jpg")
    let scan = try #require(jpeg.indices.dropLast().last { jpeg[$0] == 0xFF && jpeg[$0 + 1] == 0xDA })
    let last = Array(jpeg[scan..<jpeg.count - 2])
    jpeg.removeLast(2)
    for _ in 0..<200 { jpeg += last }
    let (width, height, count) = (240, 160, 400)
    let bytes = Container.tiff(
      width: width, height: height * count, photometric: 6, sampleCount: 3, rowsPerStrip: height, compression: 7,
      blocks: [jpeg + [0xFF, 0xD9]], blockCount: count)
    #expect(Self.refusal(bytes)?.limit?.name == "max_block_bytes")
  }

  /// White is D50 in CIELAB, and D65 in sRGB.
  ///
  /// Little CMS converts these to (255, 255, 255), (119, 119, 119) and about (190, 0, 0).
  @Test("in CIELAB is adapted to sRGB's white", arguments: [8, 9])
  func lab(photometric: Int) throws {
    let neutral: UInt8 = photometric == 8 ? 0 : 128
    let (a, b) = photometric == 8 ? (UInt8(65), UInt8(57)) : (UInt8(193), UInt8(185))
    let bytes = Container.tiff(
      width: 3, height: 1, bitDepth: 8, sampleCount: 3, photometric: photometric,
      samples: [255, neutral, neutral, 128, neutral, neutral, 102, a, b])
    let pixels = try Pixels.decode(bytes)
    #expect(pixels.color(x: 0, y: 0) == [255, 255, 255])
    for (ours, expected) in zip(pixels.color(x: 1, y: 0), [119.0, 119, 119]) { #expect(abs(ours - expected) <= 1) }
    let red = pixels.color(x: 2, y: 0)
    #expect(abs(red[0] - 191) <= 5 && red[1] < 16 && red[2] < 16)
  }

  /// 16 bits give the colors of 8 bits, whatever they are.
  @Test("in CIELAB of 16 bits has the colors of one of 8 bits", arguments: [8, 9])
  func deepLab(photometric: Int) throws {
    let isSigned = photometric == 8
    let colors = [(255, 0, 0), (128, 0, 0), (102, 65, 57), (153, 4, -60), (204, -30, 20)]
    func samples(_ encode: (Int, Int) -> [UInt8]) -> [UInt8] {
      colors.flatMap { color in encode(color.0, 0) + encode(color.1, 1) + encode(color.2, 2) }
    }
    let shallow = Container.tiff(
      width: colors.count, height: 1, bitDepth: 8, sampleCount: 3, photometric: photometric,
      samples: samples { value, channel in [UInt8(truncatingIfNeeded: channel == 0 || isSigned ? value : value + 128)] }
    )
    let deep = Container.tiff(
      width: colors.count, height: 1, bitDepth: 16, sampleCount: 3, photometric: photometric,
      samples: samples { value, channel in
        let number = channel > 0 ? (isSigned ? value : value + 128) * 256 : isSigned ? value * 257 : value * 256
        return [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
      })
    let (one, other) = (try Pixels.decode(shallow), try Pixels.decode(deep))
    for x in colors.indices {
      for (a, b) in zip(one.color(x: x, y: 0), other.color(x: x, y: 0)) { #expect(abs(a - b) <= 1) }
    }
  }

  @Test("in floating point gets one curve, not both sRGB's and a linear profile's")
  func linearProfile() throws {
    func file(profile: [UInt8]) -> [UInt8] {
      let half = withUnsafeBytes(of: Float(0.5).bitPattern.littleEndian) { Array($0) }
      return Container.tiff(
        width: 1, height: 1, bitDepth: 32, sampleCount: 3, photometric: 2, samples: half + half + half,
        profile: profile, sampleFormat: 3)
    }
    let plain = try Pixels.decode(file(profile: []))
    #expect(abs(plain.sample(x: 0, y: 0) - 48_192) < 64)
    let linear = try Pixels.decode(file(profile: Self.linearProfile))
    #expect(abs(linear.sample(x: 0, y: 0) - 32_768) < 2)
  }

  /// A profile with sRGB's primaries and a linear curve.
  private static let linearProfile: [UInt8] = {
    func fixed(_ value: Double) -> [UInt8] { Container.bigEndian(Int((value * 65_536).rounded()), byteCount: 4) }
    func xyz(_ values: [Double]) -> [UInt8] { Array("XYZ ".utf8) + [0, 0, 0, 0] + values.flatMap(fixed) }
    let curve = Array("curv".utf8) + [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    let tags: [(String, [UInt8])] = [
      ("wtpt", xyz([0.9642, 1, 0.8249])), ("rXYZ", xyz([0.4361, 0.2225, 0.0139])),
      ("gXYZ", xyz([0.3851, 0.7169, 0.0971])), ("bXYZ", xyz([0.1431, 0.0606, 0.7139])), ("rTRC", curve),
      ("gTRC", curve), ("bTRC", curve),
    ]
    var (table, data) = (Container.bigEndian(tags.count, byteCount: 4), [UInt8]())
    for (name, body) in tags {
      table += Array(name.utf8) + Container.bigEndian(132 + 12 * tags.count + data.count, byteCount: 4)
      table += Container.bigEndian(body.count, byteCount: 4)
      data += body
    }
    let size = Container.bigEndian(128 + table.count + data.count, byteCount: 4)
    let head = size + [0, 0, 0, 0, 2, 0x40, 0, 0] + Array("mntrRGB XYZ ".utf8) + [UInt8](repeating: 0, count: 12)
    let rest = Array("acsp".utf8) + [UInt8](repeating: 0, count: 28) + [0.9642, 1, 0.8249].flatMap(fixed)
    return head + rest + [UInt8](repeating: 0, count: 128 - head.count - rest.count) + table + data
  }()
}
