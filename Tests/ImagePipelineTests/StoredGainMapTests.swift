import Foundation
import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Gain maps of HEIC and AVIF", .enabled(if: ImageFormat.heic.isDecodable && ImageFormat.avif.isDecodable))
struct StoredGainMapTests {
  private static let extensions = ["heic", "avif"]

  private static func keeping(_ change: (inout ProcessingConfiguration) -> Void = { _ in }) -> ProcessingConfiguration {
    var configuration = ProcessingConfiguration(compressionQuality: 1, preferredFormat: .jpeg, gainMap: .keep)
    change(&configuration)
    return configuration
  }

  private static func causes(_ report: ProcessingReport) -> [String?] {
    report.warnings.filter { $0.code == .gainMapRemoved }.map { $0.parameters["cause"] }
  }

  /// The level of ISO 21496-1 for a level of Apple, by the formulas of both.
  private static func level(_ level: Int, headroom: Double) -> Double {
    let signal = Double(level) / 255
    let linear = signal < 0.081 ? signal / 4.5 : pow((signal + 0.099) / 1.099, 1 / 0.45)
    return 255 * log2(1 + (headroom - 1) * linear) / log2(headroom)
  }

  private static func description(of map: [UInt8]) -> (xmp: String, iso: [UInt8]) {
    let name = Array("urn:iso:std:iso:ts:21496:-1\0".utf8)
    let segments = GainMapImage.segments(of: map)
    let xmp = segments.first { $0.marker == 0xE1 }.map { String(decoding: $0.body, as: UTF8.self) } ?? ""
    let iso = segments.first { $0.marker == 0xE2 && $0.body.starts(with: name) }
    return (xmp, iso.map { Array($0.body.dropFirst(name.count)) } ?? [])
  }

  // MARK: Results

  @Test("of Apple become maps of ISO 21496-1 with levels that mean the same", arguments: extensions, [0, 2])
  func apple(extension: String, tileCount: Int) throws {
    var file = StoredGainMapFile(`extension`, .apple(headroom: 4))
    file.tileCount = tileCount
    let (bytes, report) = try process(file.bytes, Self.keeping())
    #expect(Self.causes(report).isEmpty)
    let parts = try #require(GainMapImage.parts(of: bytes))
    #expect(report.gainMapByteCount == UInt64(parts.map.count))
    let (xmp, iso) = Self.description(of: parts.map)
    #expect(xmp.contains("hdrgm:GainMapMax=\"2.0000\"") && xmp.contains("hdrgm:HDRCapacityMax=\"2.0000\""))
    let (none, two, one) = ([0, 1], [20_000, 10_000], [1, 1])
    let numbers = (none + two + none + two + one + none + none).flatMap { Container.bigEndian($0, byteCount: 4) }
    #expect(iso == [0, 0, 0, 0, 0x40] + numbers)
    let head = String(decoding: parts.image.prefix(2000), as: UTF8.self)
    #expect(head.contains("Item:Length=\"\(parts.map.count)\"") && head.contains("urn:iso:std:iso:ts:21496:-1"))
    let map = try Pixels.decode(parts.map)
    let coded = try Pixels.decode(Fixture.bytes("gray.\(`extension`)"))
    #expect(map.format == .gray8)
    #expect(map.layout[0].width == max(1, tileCount) * coded.layout[0].width)
    #expect(map.layout[0].height == coded.layout[0].height)
    for (x, y) in [(3, 4), (60, 40), (110, 70), (20, 60), (100, 10)] {
      let expected = Self.level(Int(coded.color(x: x, y: y)[0].rounded()), headroom: 4)
      #expect(abs(map.color(x: x, y: y)[0] - expected) < 4, "\(x), \(y)")
    }
    let plain = try process(file.bytes, Self.keeping { $0.gainMap = nil })
    #expect(try Pixels.decode(parts.image) == Pixels.decode(plain.bytes))
    #expect(report.output == plain.report.output)
  }

  @Test(
    "of Apple have the headroom of the maker note",
    arguments: [
      (500, 5, 1.7), (500, 1000, 1.5), (1200, 5, 2.65), (1200, 1000, 2.0),
    ])
  func makerNote(headroom: Int, gain: Int, stops: Double) throws {
    var file = StoredGainMapFile("heic", .apple(headroom: nil))
    file.exif = StoredGainMapFile.exif(headroom: headroom, gain: gain)
    let (bytes, report) = try process(file.bytes, Self.keeping())
    #expect(Self.causes(report).isEmpty)
    let xmp = Self.description(of: try #require(GainMapImage.parts(of: bytes)).map).xmp
    let maximum = String(format: "%.4f", stops)
    #expect(xmp.contains("hdrgm:GainMapMax=\"\(maximum)\""), "\(xmp)")
    // That of the map itself counts first.
    file.style = .apple(headroom: 2)
    let both = try #require(GainMapImage.parts(of: process(file.bytes, Self.keeping()).bytes))
    #expect(Self.description(of: both.map).xmp.contains("hdrgm:GainMapMax=\"1.0000\""))
  }

  @Test("of ISO 21496-1 stay as they are", arguments: extensions)
  func iso(extension: String) throws {
    let file = StoredGainMapFile(`extension`, .iso(metadata: StoredGainMapFile.metadata))
    let (bytes, report) = try process(file.bytes, Self.keeping())
    #expect(Self.causes(report).isEmpty)
    let parts = try #require(GainMapImage.parts(of: bytes))
    let (xmp, iso) = Self.description(of: parts.map)
    #expect(xmp.isEmpty && iso == StoredGainMapFile.metadata)
    let map = try Pixels.decode(parts.map)
    let coded = try Pixels.decode(Fixture.bytes("gray.\(`extension`)"))
    for (x, y) in [(3, 4), (60, 40), (110, 70)] {
      #expect(abs(map.color(x: x, y: y)[0] - coded.color(x: x, y: y)[0]) < 4)
    }
  }

  @Test("are described without a copy of their file", arguments: extensions)
  func fileSize(extension: String) throws {
    let bytes = StoredGainMapFile(`extension`, .apple(headroom: 4)).bytes
    let sniffed = ImageFormat.sniff(bytes.span.bytes)
    let format = try #require(sniffed)
    var limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0)
    limits.keepsGainMap = true
    var decoder = try Decoder(format: format, limits: limits, budget: ImageBudget(limit: 1 << 28))
    _ = try decoder.readHeader(bytes.span.bytes, isLast: true)
    let (map, file) = (decoder.gainMap, decoder.gainMapFile)
    #expect(map?.fileByteCount == file.count && !file.isEmpty)
  }

  @Test(
    "follow the geometry of their image, whatever rotation they have",
    arguments: [[], [HEIFFile.Box.rotation(quarters: 3)]])
  func geometry(mapTransforms: [HEIFFile.Box]) throws {
    var file = StoredGainMapFile("heic", .apple(headroom: 4))
    (file.transforms, file.mapTransforms) = ([.rotation(quarters: 3)], mapTransforms)
    let (bytes, report) = try process(file.bytes, Self.keeping { $0.maxHeight = 240 })
    let map = try Pixels.decode(try #require(GainMapImage.parts(of: bytes)).map)
    #expect(report.output.size == PixelSize(width: 160, height: 240))
    #expect(map.layout[0].width == 40 && map.layout[0].height == 60)
    file.transforms = []
    let upright = try #require(
      GainMapImage.parts(
        of: process(
          file.bytes,
          Self.keeping {
            $0.rotation = 90; $0.maxHeight = 240
          }
        ).bytes))
    #expect(try Pixels.decode(upright.map) == map)
  }

  @Test("are kept by those renditions that ask for them, within the planned memory", arguments: extensions)
  func renditions(extension: String) throws {
    let file = StoredGainMapFile(`extension`, .apple(headroom: 4))
    let configurations = [
      Self.keeping { $0.maxWidth = 200 }, Self.keeping { $0.gainMap = nil }, Self.keeping { $0.rotation = 90 },
      Self.keeping { $0.preferredFormat = .webp },
    ]
    for windowByteCount in [700, .max] {
      let (plan, results) = try process(file.bytes, configurations, windowByteCount: windowByteCount)
      let all = try results.map { try $0.get() }
      #expect(all.map { GainMapImage.parts(of: $0.bytes) != nil } == [true, false, true, false])
      #expect(all.map { Self.causes($0.report) } == [[], [], [], ["format"]])
      #expect(all.allSatisfy { $0.report.peakMemoryByteCount <= plan.workingSetByteCount })
    }
  }

  // MARK: Removal

  @Test("are removed with a warning if they cannot be used", arguments: extensions)
  func removed(extension: String) throws {
    let apple = StoredGainMapFile(`extension`, .apple(headroom: 4))
    let plain = try process(apple.bytes, Self.keeping { $0.gainMap = nil }).bytes
    var files: [(String, StoredGainMapFile)] = [
      ("headroom", StoredGainMapFile(`extension`, .apple(headroom: nil))),
      ("headroom", StoredGainMapFile(`extension`, .apple(headroom: 1))),
      ("headroom", StoredGainMapFile(`extension`, .apple(headroom: 1e9))),
      ("damage", StoredGainMapFile(`extension`, .iso(metadata: Array(StoredGainMapFile.metadata.dropLast())))),
      ("damage", apple), ("damage", apple), ("damage", apple),
    ]
    files[4].1.tileCount = 16  // wider than its image
    files[5].1.missingByteCount = HEIFFile.Coded(fixture: "gray.\(`extension`)").data.count - 20
    files[6].1.mapTransforms = [.crop(width: 60, height: 40)]
    for (cause, file) in files {
      let (bytes, report) = try process(file.bytes, Self.keeping())
      #expect(bytes == plain)
      #expect(Self.causes(report) == [cause])
    }
    #expect(
      try Self.causes(
        process(apple.bytes, Self.keeping { $0.filters = [Filter(name: "sepia", intensity: 1, parameters: [:])] })
          .report) == ["filters"])
    let without = try process(Fixture.bytes("photo.\(`extension`)"), Self.keeping()).report
    #expect(Self.causes(without).isEmpty && without.gainMapByteCount == 0)
  }

  @Test("have no properties behind the list of properties, which are not checked", arguments: extensions)
  func uncounted(extension: String) throws {
    var file = StoredGainMapFile(`extension`, .iso(metadata: StoredGainMapFile.metadata))
    let expected = try process(file.bytes, Self.keeping())
    file.uncounted = [.size(0xFFFF_FFFF, 0xFFFF_FFFF)]
    let (bytes, report) = try process(file.bytes, Self.keeping())
    #expect(bytes == expected.bytes && report.gainMapByteCount > 0)
  }

  @Test("survive any damage of their file", arguments: extensions)
  func mutations(extension: String) throws {
    var generator = SeededGenerator(seed: 3)
    var file = StoredGainMapFile(`extension`, .apple(headroom: 4))
    file.exif = StoredGainMapFile.exif(headroom: 500, gain: 5)
    for style: StoredGainMapFile.Style in [.apple(headroom: 4), .iso(metadata: StoredGainMapFile.metadata)] {
      file.style = style
      let bytes = file.bytes
      for _ in 0..<150 {
        var damaged = bytes
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
          damaged[Int.random(in: 0..<1600, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
        }
        guard let (result, report) = try? process(damaged, Self.keeping { $0.maxWidth = 50 }) else { continue }
        #expect(report.outputByteCount == UInt64(result.count))
        if report.gainMapByteCount > 0 { #expect(GainMapImage.parts(of: result) != nil) }
      }
    }
  }

  // MARK: Properties

  @Test("are described with their size and headroom", arguments: extensions)
  func inspected(extension: String) throws {
    func map(_ file: StoredGainMapFile) throws -> GainMapInfo? {
      var reader = ImageReader(limits: ImageLimits())
      reader.isInspection = true
      #expect(try reader.push(file.bytes.span.bytes, isLast: true).isComplete)
      return try reader.plan(ProcessingConfiguration()).input.gainMap
    }
    var file = StoredGainMapFile(`extension`, .apple(headroom: 4))
    file.transforms = [.rotation(quarters: 1)]
    let apple = try #require(try map(file))
    #expect(apple.kind == .apple && apple.size == PixelSize(width: 80, height: 120))
    #expect(abs(try #require(apple.headroom) - 4) < 0.001)
    file = StoredGainMapFile(`extension`, .apple(headroom: nil))
    #expect(try map(file) == GainMapInfo(kind: .apple, size: PixelSize(width: 120, height: 80), headroom: nil))
    file.style = .iso(metadata: StoredGainMapFile.metadata)
    let iso = try #require(try map(file))
    #expect(iso.kind == .iso)
    #expect(abs(try #require(iso.headroom) - exp2(2.5)) < 0.001)
  }
}
