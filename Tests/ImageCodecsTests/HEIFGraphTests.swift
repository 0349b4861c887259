import Foundation
import ImageCodecs
import TestSupport
import Testing

/// Files whose items reference each other: libheif would follow the references to any depth and any number of times.
@Suite("AVIF and HEIC items", .enabled(if: ImageFormat.avif.isDecodable), .timeLimit(.minutes(15)))
struct HEIFGraphTests {
  private static let (width, height) = (61, 43)
  private static let coded = HEIFFile.Coded(fixture: "photo.avif")
  private static let size = HEIFFile.Box.size(width, height)

  private static func refusal(_ file: HEIFFile) -> CodecError? {
    let budget = ImageBudget(limit: 1 << 30)
    let error = #expect(throws: CodecError.self) { _ = try Pixels.decode(file.bytes, budget: budget) }
    #expect(budget.used == 0 && budget.peak < 1 << 20)
    return error
  }

  private static func add(_ type: String, to file: inout HEIFFile, count: Int = 1) -> Int {
    switch type {
    case "grid":
      file.add(
        type, data: HEIFFile.grid(rows: 1, columns: count, width: width * count, height: height),
        properties: [.size(width * count, height)])
    case "iovl":
      file.add(
        type, data: HEIFFile.overlay(width: width, height: height, count: count), properties: [size])
    default: file.add(type, properties: [size])
    }
  }

  @Test("are images of grids, overlays and their alpha")
  func derived() throws {
    let image = try Pixels.decode(Fixture.bytes("photo.avif"))
    for type in ["grid", "iovl", "iden"] {
      var file = HEIFFile(brand: "avif")
      let first = Self.add(type, to: &file)
      file.refer("dimg", from: first, to: [file.add(Self.coded)])
      #expect(try Pixels.decode(file.bytes).mean == image.mean, "\(type)")
    }
  }

  @Test(
    "that reference themselves are refused",
    arguments: [["grid"], ["iovl"], ["iden"], ["grid", "iovl"], ["iden", "iden", "iden"]])
  func cycles(types: [String]) {
    var file = HEIFFile(brand: "avif")
    for type in types { _ = Self.add(type, to: &file) }
    for number in 1...types.count { file.refer("dimg", from: number, to: [number % types.count + 1]) }
    let error = Self.refusal(file)
    #expect(error?.code == .corrupt && error?.message.contains("derived from itself") == true)
  }

  @Test("of items that are no images of the file are refused", arguments: ["grid", "iovl", "iden"], [9, 2])
  func absentParts(type: String, number: Int) {
    var file = HEIFFile(brand: "avif")
    let first = Self.add(type, to: &file)
    _ = file.add("Exif", data: [0, 0, 0, 0])
    file.refer("dimg", from: first, to: [number])
    let error = Self.refusal(file)
    #expect(error?.code == .corrupt && error?.message.contains("not an image of the file") == true)
  }

  @Test("that are each other's alpha are refused")
  func alphaCycle() {
    var file = HEIFFile(brand: "avif")
    for number in 1...2 {
      _ = file.add(Self.coded, properties: [.alpha])
      file.refer("auxl", from: number, to: [3 - number])
    }
    #expect(Self.refusal(file)?.code == .corrupt)
  }

  @Test("are at most three levels deep", arguments: 1...20)
  func depth(levels: Int) throws {
    var file = HEIFFile(brand: "avif")
    for _ in 0..<levels { _ = Self.add("iovl", to: &file) }
    _ = file.add(Self.coded)
    for number in 1...levels { file.refer("dimg", from: number, to: [number + 1]) }
    if levels <= 3 {
      #expect(throws: Never.self) { try Pixels.decode(file.bytes) }
    } else if levels > 4 {
      let error = Self.refusal(file)
      #expect(error?.code == .limitExceeded && error?.limit?.name == "max_derivation_depth")
    }
  }

  /// Twenty levels of ten references each would cause 10^20 decodings; two levels of 255 cause 65,025.
  @Test("that reference each other too many times are refused", arguments: [(20, 10), (2, 255), (3, 255)])
  func work(levels: Int, count: Int) {
    var file = HEIFFile(brand: "avif")
    for _ in 0..<levels { _ = Self.add("iovl", to: &file, count: count) }
    _ = file.add(Self.coded)
    for number in 1...levels {
      file.refer("dimg", from: number, to: [Int](repeating: number + 1, count: count))
    }
    #expect(Self.refusal(file)?.limit?.name == "max_part_pixels" || levels == 20)
    #expect(Self.refusal(file)?.code == .limitExceeded)
  }

  /// libheif reads outside the rows of such a part, and would show that memory.
  @Test("do not start outside their overlay", arguments: [(-5, 9), (9, -5), (0, 0), (9, 9)])
  func partsOutside(x: Int, y: Int) throws {
    var file = HEIFFile(brand: "avif")
    let overlay = HEIFFile.overlay(width: Self.width, height: Self.height, count: 1, x: x, y: y)
    _ = file.add("iovl", data: overlay, properties: [Self.size])
    file.refer("dimg", from: 1, to: [file.add(Self.coded)])
    if min(x, y) < 0 {
      #expect(Self.refusal(file)?.code == .unsupported)
    } else {
      #expect(throws: Never.self) { try Pixels.decode(file.bytes) }
    }
  }

  @Test("cannot be rotated repeatedly")
  func transforms() {
    var file = HEIFFile(brand: "avif")
    let (side, count) = (8000, 250)
    let grid = HEIFFile.grid(rows: 1, columns: 1, width: side, height: side)
    let rotations = [HEIFFile.Box](repeating: .rotation(quarters: 2), count: count)
    _ = file.add("grid", data: grid, properties: [.size(side, side)] + rotations)
    file.refer("dimg", from: 1, to: [file.add(Self.coded)])
    let error = Self.refusal(file)
    #expect(error?.code == .limitExceeded && error?.limit?.name == "max_transforms")
  }

  /// libheif searches the list of all items for each of them.
  @Test("are limited in number, and cost is linear in their number", arguments: [(4000, false), (20_000, true)])
  func manyItems(count: Int, isRefused: Bool) throws {
    var file = HEIFFile(brand: "avif")
    _ = file.add(Self.coded)
    for _ in 1..<count { _ = file.add("iden", properties: [Self.size]) }
    let bytes = file.bytes
    let elapsed = processorTime {
      if isRefused {
        let error = #expect(throws: CodecError.self) { try Pixels.decode(bytes) }
        #expect(
          error?.code == .limitExceeded
            && error?.limit == CodecError.Limit(name: "max_items", limit: 4096, value: 20_000))
      } else {
        #expect(throws: Never.self) { try Pixels.decode(bytes) }
      }
    }
    #expect(elapsed < .seconds(isRefused ? 1 : 20))
  }

  /// The time of processors that this thread takes for `body`, which does not depend on other load.
  private func processorTime(of body: () -> Void) -> Duration {
    func now() -> Duration {
      var time = timespec()
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
      return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
    let start = now()
    body()
    return now() - start
  }

  @Test("cannot share so much data that copies would exhaust the memory")
  func sharedData() {
    var file = HEIFFile(brand: "avif")
    _ = file.add(Self.coded)
    let data = [UInt8](repeating: 7, count: 1 << 20)
    for _ in 0..<200 { _ = file.add("Exif", data: data) }
    let error = #expect(throws: CodecError.self) { try Pixels.decode(file.bytes) }
    #expect(error?.code == .limitExceeded && error?.limit?.name == "max_item_bytes")
  }

  /// Range 16 to 235, where 16 is black: pillow-heif 1.8 and Pillow 13 wrote full-range images, whose flag was then
  /// changed.
  @Test("without chroma are converted to full range", arguments: ["gray.avif", "gray.heic"])
  func limitedGray(name: String) throws {
    let full = try Pixels.decode(Fixture.bytes(name))
    var bytes = Fixture.bytes(name)
    let profile = try #require(bytes.indices.dropLast(15).first { bytes[$0..<$0 + 8].elementsEqual("colrnclx".utf8) })
    bytes[profile + 14] &= 0x7F
    let limited = try Pixels.decode(bytes)
    for (expanded, stored) in zip(limited.planes[0], full.planes[0]) {
      let exact = (Double(stored) - 16) * 255 / 219
      try #require(abs(Double(expanded) - min(255, max(0, exact))) <= 0.5)
    }
  }

  /// An AV1 sequence header has the range, too.
  @Test("without chroma are converted to full range if only the bitstream states theirs")
  func undescribedGray() throws {
    let name = "gray-limited.avif"
    var file = HEIFFile(brand: "avif")
    _ = file.add(HEIFFile.Coded(fixture: name, without: ["colr"]))
    let pixels = try Pixels.decode(file.bytes)
    #expect(try pixels.planes == Pixels.decode(Fixture.bytes(name)).planes)
    for (ours, theirs) in zip(pixels.mean, Fixture.named(name).mean) { #expect(abs(ours - theirs) < 1) }
  }

  private static func estimate(_ bytes: [UInt8], format: ImageFormat) throws -> UInt64 {
    var decoder = try Decoder(
      format: format, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 100_000_000, maxScans: 0),
      budget: ImageBudget(limit: 1 << 30))
    let header = try decoder.readHeader(bytes.span.bytes, isLast: true)
    #expect(header.value)
    return try decoder.estimatedByteCount(scale: 8)
  }

  @Test(
    "charge for the samples that the bitstream has, whatever the properties state", arguments: [0x0C, 0x1C] as [UInt8])
  func statedDepth(flags: UInt8) throws {
    var coded = HEIFFile.Coded(fixture: "deep.avif")  // 41x29, ten bits, 4:4:4
    func estimate() throws -> UInt64 {
      var file = HEIFFile(brand: "avif")
      _ = file.add(coded)
      return try Self.estimate(file.bytes, format: .avif)
    }
    let stated = try estimate()
    let place = try #require(coded.properties.firstIndex { $0.type == "av1C" })
    coded.properties[place].body[2] = flags  // eight bits, 4:2:0 or no chroma
    let rowByteCount = UInt64(41 * 3 * 64)  // half of those with ten bits
    #expect(try estimate() + rowByteCount >= stated)
  }

  @Test("charge little more memory than they use: 48 megapixels without separate tiles fit")
  func cameraImage() throws {
    var file = HEIFFile(brand: "heic")
    let tile = HEIFFile.Coded(fixture: "photo.heic", without: ["ispe"])
    let (width, height) = (8064, 6048)
    let grid = HEIFFile.grid(rows: 252, columns: 252, width: width, height: height)
    _ = file.add("grid", data: grid, properties: [.size(width, height)])
    _ = file.add(tile, properties: [.size(120, 80)])
    file.refer("dimg", from: 1, to: [2])
    #expect(try Self.estimate(file.bytes, format: .heic) < 360 << 20)
  }

  /// Returns a grid of copies of one tile, and the tile.
  private static func tiled(
    _ name: String, rows: Int, columns: Int, width: Int, height: Int, properties: [HEIFFile.Box] = []
  ) throws -> (grid: [UInt8], tile: Pixels) {
    let brand = name.hasSuffix(".heic") ? "heic" : "avif"
    let coded = HEIFFile.Coded(fixture: name)
    var (grid, tile) = (HEIFFile(brand: brand), HEIFFile(brand: brand))
    _ = grid.add(
      "grid", data: HEIFFile.grid(rows: rows, columns: columns, width: width, height: height),
      properties: [.size(width, height)] + properties)
    let number = grid.add(coded)
    grid.refer("dimg", from: 1, to: [Int](repeating: number, count: rows * columns))
    _ = tile.add(coded)
    return (grid.bytes, try Pixels.decode(tile.bytes))
  }

  @Test("that are grids are decoded by rows of tiles", arguments: ["photo.avif", "deep.avif", "photo.heic"])
  func tiles(name: String) throws {
    let whole = try Self.tiled(name, rows: 1, columns: 1, width: 10, height: 10).tile
    let (tileWidth, tileHeight) = (whole.layout[0].width, whole.layout[0].height)
    let (width, height) = (3 * tileWidth - 7, 4 * tileHeight - 5)
    let (x, y) = (tileWidth + 5, tileHeight + 4)
    let crop = HEIFFile.Box.crop(width: width - 2 * x, height: height - 2 * y)
    for (x, y, properties) in [(0, 0, []), (x, y, [crop])] {
      let file = try Self.tiled(name, rows: 4, columns: 3, width: width, height: height, properties: properties).grid
      let pixels = try Pixels.decode(file)
      #expect(pixels.layout[0].width == width - 2 * x && pixels.layout[0].height == height - 2 * y)
      var differenceCount = 0
      for row in 0..<pixels.layout[0].height {
        for column in 0..<pixels.layout[0].width {
          let (tileX, tileY) = ((x + column) % tileWidth, (y + row) % tileHeight)
          let isSame = (0..<3).allSatisfy { channel in
            pixels.sample(x: column, y: row, channel: channel) == whole.sample(x: tileX, y: tileY, channel: channel)
          }
          differenceCount += isSame ? 0 : 1
        }
      }
      #expect(differenceCount == 0)
      #expect(pixels.warnings.isEmpty)
    }
  }

  @Test("that are grids charge a row of tiles, and may be larger than images that are buffered whole")
  func tiledMemory() throws {
    let file = try Self.tiled("photo.heic", rows: 30, columns: 30, width: 3600, height: 2400).grid
    #expect(try Self.estimate(file, format: .heic) < 8 << 20)
    let limits = CodecLimits(maxPixels: 9_000_000, maxBufferedPixels: 100_000, maxScans: 0)
    let budget = ImageBudget(limit: 8 << 20)
    #expect(try Pixels.decode(file, budget: budget, limits: limits).layout[0].width == 3600)
    let error = #expect(throws: CodecError.self) {
      try Pixels.decode(file, limits: CodecLimits(maxPixels: 8_000_000, maxBufferedPixels: 0, maxScans: 0))
    }
    #expect(error?.limit?.name == "max_pixels")
  }
}
