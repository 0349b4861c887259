import ImageCodecs
import TestSupport
import Testing

/// Transforms of AVIF and HEIC become the orientation of rows that are returned as they are coded.
@Suite("Transforms of AVIF and HEIC", .enabled(if: ImageFormat.avif.isDecodable))
struct HEIFTransformTests {
  /// Positions of pixels in the decoded image, in rows.
  private typealias Grid = [[SIMD2<Int>]]

  private static let combinations: [[HEIFFile.Box]] = (0..<4).flatMap { quarters -> [[HEIFFile.Box]] in
    let turn: [HEIFFile.Box] = quarters == 0 ? [] : [.rotation(quarters: UInt8(quarters))]
    return [turn, turn + [.mirror(axis: 0)], turn + [.mirror(axis: 1)], [.mirror(axis: 1)] + turn]
  }

  private static func grid(width: Int, height: Int) -> Grid {
    (0..<height).map { y in (0..<width).map { SIMD2($0, y) } }
  }

  private static func transposed(_ grid: Grid) -> Grid {
    grid[0].indices.map { x in grid.map { $0[x] } }
  }

  /// Applies a property as ISO/IEC 23008-12 defines it.
  private static func apply(_ box: HEIFFile.Box, to grid: Grid) -> Grid {
    switch box.type {
    case "irot": return (0..<box.body[0]).reduce(grid) { rotated, _ in transposed(rotated).reversed() }
    case "imir": return box.body[0] == 0 ? grid.reversed() : grid.map { $0.reversed() }
    default:
      let (width, height) = (Int(box.body[3]), Int(box.body[11]))
      let (x, y) = ((grid[0].count - width) / 2, (grid.count - height + 1) / 2)
      return grid[y..<y + height].map { Array($0[x..<x + width]) }
    }
  }

  /// Applies an EXIF orientation to an image as it is stored (CIPA DC-008, 4.6.4).
  private static func orient(_ grid: Grid, by orientation: Int) -> Grid {
    switch orientation {
    case 2: grid.map { $0.reversed() }
    case 3: grid.reversed().map { $0.reversed() }
    case 4: grid.reversed()
    case 5: transposed(grid)
    case 6: transposed(grid.reversed())
    case 7: transposed(grid.reversed().map { $0.reversed() })
    case 8: transposed(grid.map { $0.reversed() })
    default: grid
    }
  }

  private static func shown(_ grid: Grid, of pixels: Pixels) -> [[Double]] {
    grid.joined().map { pixels.color(x: $0.x, y: $0.y) }
  }

  private static func orientation(_ bytes: [UInt8], format: ImageFormat) throws -> Int {
    var decoder = try Decoder(
      format: format, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0),
      budget: ImageBudget(limit: 1 << 24))
    _ = try decoder.readHeader(bytes.span.bytes, isLast: true)
    return decoder.header.orientation.rawValue
  }

  private static func expect(_ transforms: [HEIFFile.Box], name: String, format: ImageFormat) throws {
    let coded = HEIFFile.Coded(fixture: name, without: ["irot", "imir"])
    func file(_ properties: [HEIFFile.Box]) -> [UInt8] {
      var file = HEIFFile(brand: format.rawValue)
      _ = file.add(coded, properties: properties)
      return file.bytes
    }
    let whole = try Pixels.decode(file([]))
    let all = grid(width: whole.layout[0].width, height: whole.layout[0].height)
    let pixels = try Pixels.decode(file(transforms))
    let stored = grid(width: pixels.layout[0].width, height: pixels.layout[0].height)
    let ours = orient(stored, by: try orientation(file(transforms), format: format))
    let theirs = transforms.reduce(all) { apply($1, to: $0) }
    #expect(ours.count == theirs.count && ours[0].count == theirs[0].count)
    #expect(shown(ours, of: pixels) == shown(theirs, of: whole), "\(name): \(transforms.map(\.type))")
  }

  @Test("rotate and mirror samples of 8 and 10 bits", arguments: combinations.indices, ["photo.avif", "deep.avif"])
  func rotations(index: Int, name: String) throws {
    try Self.expect(Self.combinations[index], name: name, format: .avif)
  }

  @Test("rotate and mirror HEIC", arguments: combinations.indices)
  func heic(index: Int) throws {
    try Self.expect(Self.combinations[index], name: "photo.heic", format: .heic)
  }

  @Test("apply in the order of the file, also to crops", arguments: ["photo.avif", "deep.avif"])
  func crops(name: String) throws {
    let crop = HEIFFile.Box.crop(width: 21, height: 10)
    let (turn, flip) = (HEIFFile.Box.rotation(quarters: 1), HEIFFile.Box.mirror(axis: 0))
    for transforms in [
      [crop], [crop, turn, flip], [turn, crop], [flip, turn, crop], [crop, turn, .crop(width: 5, height: 4)],
    ] {
      try Self.expect(transforms, name: name, format: .avif)
    }
  }

  @Test("of a grid's tiles are applied before the grid is")
  func tiles() throws {
    let coded = HEIFFile.Coded(fixture: "photo.avif")
    let (width, height) = (61, 43)
    func file(tile: [HEIFFile.Box], grid: [HEIFFile.Box]) -> [UInt8] {
      var file = HEIFFile(brand: "avif")
      _ = file.add(
        "grid", data: HEIFFile.grid(rows: 1, columns: 1, width: width, height: height),
        properties: [.size(width, height)] + grid)
      file.refer("dimg", from: 1, to: [file.add(coded, properties: tile)])
      return file.bytes
    }
    let half = HEIFFile.Box.rotation(quarters: 2)
    let upright = try Pixels.decode(file(tile: [], grid: []))
    #expect(try Pixels.decode(file(tile: [half], grid: [])).planes[0] != upright.planes[0])
    #expect(
      try Pixels.decode(file(tile: [half], grid: [half])).planes == Pixels.decode(file(tile: [half], grid: [])).planes)
    #expect(try Self.orientation(file(tile: [half], grid: [half]), format: .avif) == 3)
    #expect(try Self.orientation(file(tile: [half], grid: []), format: .avif) == 1)
  }

  @Test("that crop to nothing are refused")
  func emptyCrop() {
    var file = HEIFFile(brand: "avif")
    let outside = HEIFFile.Box("clap", [10, 1, 10, 1, 500, 1, 0, 1].flatMap { Container.bigEndian($0, byteCount: 4) })
    _ = file.add(HEIFFile.Coded(fixture: "photo.avif"), properties: [outside])
    let error = #expect(throws: CodecError.self) { try Pixels.decode(file.bytes) }
    #expect(error?.code == .corrupt)
  }
}
