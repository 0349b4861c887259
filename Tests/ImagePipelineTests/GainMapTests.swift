import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Gain maps")
struct GainMapTests {
  private static let image = Fixture.bytes("photo-420.jpg")
  private static let imageSize: (width: Int, height: Int) = {
    let fixture = try? Pixels.decode(image)
    return (fixture?.layout[0].width ?? 0, fixture?.layout[0].height ?? 0)
  }()

  /// A map whose levels rise from the left to the right and from the top to the bottom.
  private static func map(
    width: Int = 60, height: Int = 40, format: PixelFormat = .gray8, isProgressive: Bool = false
  ) throws -> [UInt8] {
    var samples: [UInt8] = []
    for y in 0..<height {
      for x in 0..<width {
        let level = 40 + 120 * x / width + 80 * y / height
        samples += [UInt8](repeating: UInt8(level), count: format.pixelByteCount)
      }
    }
    return try encodedImage(
      samples, width: width, height: height, pixelFormat: format, as: .jpeg, isProgressive: isProgressive)
  }

  private static func file(_ styles: Set<GainMapImage.Style> = [.adobe, .iso]) throws -> GainMapImage {
    GainMapImage(image: image, map: try map(), styles: styles)
  }

  private static func keeping(_ change: (inout ProcessingConfiguration) -> Void = { _ in }) -> ProcessingConfiguration {
    var configuration = ProcessingConfiguration(maxWidth: 60, compressionQuality: 0.9, gainMap: .keep)
    change(&configuration)
    return configuration
  }

  private static func causes(_ report: ProcessingReport) -> [String?] {
    report.warnings.filter { $0.code == .gainMapRemoved }.map { $0.parameters["cause"] }
  }

  // MARK: Container

  @Test(
    "are kept with their descriptions bit by bit, and the image is that without a map", arguments: [1, 7, 4096, .max])
  func kept(windowByteCount: Int) throws {
    for styles: Set<GainMapImage.Style> in [[.adobe], [.iso], [.apple], [.adobe, .iso], [.adobe, .iso, .apple]] {
      let file = try Self.file(styles)
      let (bytes, report) = try process(file.bytes, Self.keeping(), windowByteCount: windowByteCount)
      let parts = try #require(GainMapImage.parts(of: bytes))
      #expect(Self.causes(report).isEmpty)
      #expect(report.outputByteCount == UInt64(bytes.count))
      #expect(report.gainMapByteCount == UInt64(parts.map.count))
      let segments = GainMapImage.segments(of: parts.map).map(\.body)
      #expect(file.descriptions.allSatisfy { segments.contains($0.body) })
      let plain = try process(Self.image, ProcessingConfiguration(maxWidth: 60, compressionQuality: 0.9))
      #expect(try Pixels.decode(parts.image) == Pixels.decode(plain.bytes))
      #expect(report.output == plain.report.output)
      let head = String(decoding: parts.image.prefix(2000), as: UTF8.self)
      #expect(head.contains("Item:Length=\"\(parts.map.count)\"") == styles.contains(.adobe))
      #expect(head.contains("urn:iso:std:iso:ts:21496:-1") == styles.contains(.iso))
    }
  }

  @Test("are dropped without cost if the field is not set")
  func dropped() throws {
    let file = try Self.file()
    let configuration = ProcessingConfiguration(maxWidth: 60, compressionQuality: 0.9)
    let with = try process(file.bytes, configuration)
    #expect(with.bytes == (try process(Self.image, configuration).bytes))
    #expect(with.report.gainMapByteCount == 0 && Self.causes(with.report).isEmpty)
    var dropping = configuration
    dropping.gainMap = .drop
    #expect(try process(file.bytes, dropping).bytes == with.bytes)
  }

  @Test("that an image does not have change nothing")
  func absent() throws {
    let configuration = ProcessingConfiguration(maxWidth: 60, compressionQuality: 0.9)
    for name in ["photo-420.jpg", "photo-exif-6.jpg", "photo-progressive.jpg"] where Fixture.names.contains(name) {
      let bytes = Fixture.bytes(name)
      #expect(try process(bytes, Self.keeping()).bytes == process(bytes, configuration).bytes)
    }
  }

  @Test("are copied with an image that is copied")
  func copied() throws {
    let file = try Self.file()
    let (bytes, report) = try process(file.bytes, ProcessingConfiguration(gainMap: .keep))
    #expect(report.isPassedThrough)
    let parts = try #require(GainMapImage.parts(of: bytes))
    #expect(try Pixels.decode(parts.map) == Pixels.decode(file.map))
    #expect(try Pixels.decode(parts.image) == Pixels.decode(Self.image))
  }

  @Test("keep of their XMP only what describes them, as written")
  func cleanedXMP() throws {
    let name = Array("http://ns.adobe.com/xap/1.0/\0".utf8)
    func packet(_ others: (root: String, attributes: String, elements: String)) -> [UInt8] {
      name
        + Array(
          ("<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"\(others.root)><rdf:RDF "
            + "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"><rdf:Description rdf:about=\"\" "
            + "xmlns:g=\"http://ns.adobe.com/hdr-gain-map/1.0/\" g:Version=\"1.0\"\(others.attributes)><g:GainMapMax>"
            + "<rdf:Seq><rdf:li>2.5</rdf:li><rdf:li>2.25</rdf:li></rdf:Seq></g:GainMapMax>\(others.elements)"
            + "</rdf:Description></rdf:RDF></x:xmpmeta>").utf8)
    }
    let plain = packet(("", "", ""))
    let secrets = [
      (" x:xmptk='\(String(repeating: "s", count: 300))'", "", ""),
      ("", " xmlns:dc='http://purl.org/dc/' dc:a='s'", ""),
      ("", "", "<dc:creator xmlns:dc='http://purl.org/dc/'><rdf:Seq><rdf:li>s</rdf:li></rdf:Seq></dc:creator>"),
      ("", "", "<!-- s -->"), ("", "", "<?s s?>"), ("", "", "<s/>"), ("", " s='s'", ""),
      ("", " xmlns:g='http://purl.org/dc/'", ""),
    ]
    for (index, secret) in ([("", "", "")] + secrets).enumerated() {
      var file = try Self.file([.iso])
      file.map = Container.jpeg(file.map, adding: [(0xE1, packet(secret))])
      let parts = try #require(GainMapImage.parts(of: try process(file.bytes, Self.keeping()).bytes))
      let bodies = GainMapImage.segments(of: parts.map).filter { $0.marker == 0xE1 && $0.body.starts(with: name) }
      // A prefix with two meanings is not that of gain maps.
      #expect(bodies.map(\.body) == (index == secrets.count ? [] : [plain]), "\(secret)")
    }
    var file = try Self.file([.iso])
    file.map = Container.jpeg(file.map, adding: [(0xE1, Array(plain.dropLast(3)))])
    let parts = try #require(GainMapImage.parts(of: try process(file.bytes, Self.keeping()).bytes))
    #expect(!GainMapImage.segments(of: parts.map).contains { $0.body.starts(with: name) })
  }

  @Test("have a directory in the XMP that is kept")
  func keptXMP() throws {
    var file = try Self.file([.adobe])
    let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    func packet(_ creator: String) -> [UInt8] {
      Array("http://ns.adobe.com/xap/1.0/\0<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"\(rdf)\">".utf8)
        + Array("<rdf:Description rdf:about=\"\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:creator>".utf8)
        + Array("\(creator)</dc:creator></rdf:Description></rdf:RDF></x:xmpmeta>".utf8)
    }
    file.segments = [(0xE1, packet("Ada"))]
    let configuration = Self.keeping {
      $0.metadata = .selected
      $0.keepXMP = true
      $0.metadataTitle = "A title"
    }
    let (bytes, report) = try process(file.bytes, configuration)
    #expect(Self.causes(report).isEmpty)
    let packets = GainMapImage.segments(of: bytes).filter { $0.marker == 0xE1 }
    #expect(packets.count == 1)
    let text = String(decoding: try #require(packets.first).body, as: UTF8.self)
    #expect(text.contains("A title") && text.contains("GainMap") && text.contains("Item:Length"))
  }

  // MARK: Geometry

  @Test("follow the geometry of their image", arguments: [PixelFormat.gray8, .rgb8], [false, true])
  func geometry(format: PixelFormat, isProgressive: Bool) throws {
    let (width, height) = (Self.imageSize.width / 2, Self.imageSize.height / 2)
    let map = try Self.map(width: width, height: height, format: format, isProgressive: isProgressive)
    let file = GainMapImage(image: Self.image, map: map, styles: [.adobe])
    let configurations: [ProcessingConfiguration] = [
      Self.keeping { $0.compressionQuality = 1 },
      Self.keeping { $0.rotation = 90 },
      Self.keeping {
        $0.rotation = 270
        $0.flipVertical = true
      },
      Self.keeping {
        ($0.maxHeight, $0.resizeMode, $0.gravity) = (60, .fill, .southEast)
        $0.flipHorizontal = true
      },
      Self.keeping { $0.crop = Crop(unit: .fractions, x: 0.25, y: 0.125, width: 0.5, height: 0.75) },
      Self.keeping { ($0.maxWidth, $0.alwaysEncode) = (nil, true) },
    ]
    for configuration in configurations {
      let (bytes, report) = try process(file.bytes, configuration)
      let parts = try #require(GainMapImage.parts(of: bytes))
      let result = try Pixels.decode(parts.map)
      #expect((result.format == .gray8) == (format == .gray8))
      let size = report.output.size
      #expect(abs(result.layout[0].width * 2 - size.width) <= 1)
      #expect(abs(result.layout[0].height * 2 - size.height) <= 1)
      // The map itself as an image whose result has the size of the map.
      var alone = configuration
      alone.maxWidth = result.layout[0].width
      alone.maxHeight = configuration.maxHeight.map { _ in result.layout[0].height }
      alone.gainMap = nil
      let expected = try Pixels.decode(process(map, alone).bytes)
      try #require(expected.layout[0].width == result.layout[0].width)
      #expect(zip(expected.mean, result.mean).allSatisfy { abs($0 - $1) < 1.5 })
      for (x, y) in [(1, 1), (result.layout[0].width - 2, 1), (1, result.layout[0].height - 2)] {
        let theirs = expected.color(x: x, y: min(y, expected.layout[0].height - 1))
        #expect(abs(result.color(x: x, y: y)[0] - theirs[0]) < 6)
      }
    }
  }

  @Test("follow the orientation of their image, and not their own")
  func orientation() throws {
    var file = try Self.file([.adobe])
    file.segments = [(0xE1, Array("Exif\0\0".utf8) + Container.exif(orientation: 6))]
    file.map = Container.jpeg(file.map, adding: [(0xE1, Array("Exif\0\0".utf8) + Container.exif(orientation: 3))])
    let (bytes, report) = try process(file.bytes, Self.keeping { $0.compressionQuality = 1 })
    #expect(report.output.size.height > report.output.size.width)
    let map = try Pixels.decode(try #require(GainMapImage.parts(of: bytes)).map)
    #expect(map.layout[0].height > map.layout[0].width)
    // Rotated clockwise: levels rise to the bottom and to the left.
    let (right, bottom) = (map.layout[0].width - 1, map.layout[0].height - 1)
    #expect(map.sample(x: 0, y: 0) > map.sample(x: right, y: 0) && map.sample(x: 0, y: bottom) > map.sample(x: 0, y: 0))
  }

  @Test("are padded with black, and gray stays gray")
  func padded() throws {
    let file = try Self.file([.adobe])
    let (bytes, report) = try process(file.bytes, Self.keeping { ($0.maxHeight, $0.pad) = (120, true) })
    #expect(report.output.size == PixelSize(width: 60, height: 120))
    let map = try Pixels.decode(try #require(GainMapImage.parts(of: bytes)).map)
    #expect(map.format == .gray8)
    let (width, height) = (map.layout[0].width, map.layout[0].height)
    #expect(abs(Double(height) / Double(width) - 2) < 0.1)
    #expect(map.sample(x: width / 2, y: 0) < 4 && map.sample(x: width / 2, y: height - 1) < 4)
    #expect(map.sample(x: width / 2, y: height / 2) > 60)
  }

  @Test("follow a trim")
  func trimmed() throws {
    let file = try Self.file([.adobe])
    for windowByteCount in [1000, .max] {
      let configuration = Self.keeping { $0.trim = Trim(threshold: 5) }
      let (bytes, report) = try process(file.bytes, configuration, windowByteCount: windowByteCount)
      #expect(GainMapImage.parts(of: bytes) != nil && Self.causes(report).isEmpty)
    }
  }

  // MARK: Removal

  @Test("are removed with a warning from results that cannot have them")
  func removed() throws {
    let file = try Self.file()
    let size = try process(Self.image, Self.keeping()).bytes.count
    let cases: [(String, ProcessingConfiguration)] = [
      ("format", Self.keeping { $0.preferredFormat = .png }), ("format", Self.keeping { $0.preferredFormat = .auto }),
      ("filters", Self.keeping { $0.filters = [Filter(name: "sepia", intensity: 1, parameters: [:])] }),
      ("regions", Self.keeping { $0.regions = [Region(area: Crop(x: 0, y: 0, width: 20, height: 20))] }),
      ("max_bytes", Self.keeping { $0.maxBytes = UInt64(size + 300) }),
    ]
    for (cause, configuration) in cases {
      let (bytes, report) = try process(file.bytes, configuration)
      #expect(Self.causes(report) == [cause])
      #expect(report.gainMapByteCount == 0)
      var plain = configuration
      plain.gainMap = nil
      #expect(try process(Self.image, plain).bytes == bytes)
    }
    let sharpened = Self.keeping { $0.filters = [Filter(name: "sharpen", intensity: 1, parameters: [:])] }
    #expect(try process(file.bytes, sharpened).report.gainMapByteCount > 0)
  }

  @Test("that are damaged are removed with a warning, and hostile lists cost nothing but the map")
  func damaged() throws {
    let plain = try process(Self.image, ProcessingConfiguration(maxWidth: 60, compressionQuality: 0.9)).bytes
    var files = [try Self.file(), try Self.file(), try Self.file(), try Self.file(), try Self.file()]
    files[0].offsetError = -3000
    files[1].offsetError = 100_000
    files[2].byteCountError = -600
    files[3].map = Array(files[3].map.prefix(400))
    files[4].map = Array(repeating: 7, count: 500)
    for file in files {
      for windowByteCount in [100, .max] {
        let (bytes, report) = try process(file.bytes, Self.keeping(), windowByteCount: windowByteCount)
        #expect(bytes == plain)
        #expect(Self.causes(report) == ["damage"])
      }
    }
    var larger = try Self.file()
    larger.map = try Self.map(width: Self.imageSize.width + 8, height: 8)
    #expect(try Self.causes(process(larger.bytes, Self.keeping()).report) == ["damage"])
  }

  @Test("survive any damage of their file")
  func mutations() throws {
    var generator = SeededGenerator(seed: 31)
    let file = try Self.file([.adobe, .iso, .apple])
    let bytes = file.bytes
    let limits = ImageLimits(memory: 4 << 20)
    let ends = [Int](0..<600) + [Int](bytes.count - file.map.count - 1200..<bytes.count)
    for _ in 0..<400 {
      var damaged = bytes
      for _ in 0..<Int.random(in: 1...6, using: &generator) {
        let place = ends.randomElement(using: &generator) ?? 0
        damaged[place] = UInt8.random(in: 0...255, using: &generator)
      }
      if Bool.random(using: &generator) { damaged.removeLast(Int.random(in: 0..<2000, using: &generator)) }
      guard let (result, report) = try? process(damaged, Self.keeping(), windowByteCount: 700, limits: limits) else {
        continue
      }
      #expect(report.outputByteCount == UInt64(result.count))
      if report.gainMapByteCount > 0 { #expect(GainMapImage.parts(of: result) != nil) }
    }
  }

  @Test("that another image behind the first is not are not kept")
  func others() throws {
    var file = try Self.file([])
    #expect(try process(file.bytes, Self.keeping()).report.gainMapByteCount == 0)
    #expect(try process(file.bytes, Self.keeping()).report.messages.isEmpty)
    file = try Self.file()
    file.purpose = 0x1_0001  // a thumbnail
    #expect(try process(file.bytes, Self.keeping()).report.gainMapByteCount == 0)
    file.purpose = 0x5_0000  // a gain map
    #expect(try process(file.bytes, Self.keeping()).report.gainMapByteCount > 0)
  }

  // MARK: Renditions and memory

  @Test("are kept by those renditions that ask for them")
  func renditions() throws {
    let file = try Self.file()
    let configurations = [
      Self.keeping(), ProcessingConfiguration(maxWidth: 30, compressionQuality: 0.9), Self.keeping { $0.rotation = 90 },
      Self.keeping { $0.preferredFormat = .webp },
    ]
    for windowByteCount in [500, .max] {
      let (plan, results) = try process(file.bytes, configurations, windowByteCount: windowByteCount)
      let all = try results.map { try $0.get() }
      #expect(all.map { GainMapImage.parts(of: $0.bytes) != nil } == [true, false, true, false])
      #expect(all.map { $0.report.gainMapByteCount > 0 } == [true, false, true, false])
      #expect(all.map { Self.causes($0.report) } == [[], [], [], ["format"]])
      #expect(all.allSatisfy { $0.report.peakMemoryByteCount <= plan.workingSetByteCount })
      #expect(all[1].bytes == (try process(Self.image, configurations).results[1].get().bytes))
    }
  }

  @Test("need no more memory than planned in many renditions")
  func manyRenditions() throws {
    let file = try Self.file()
    let configurations = (20..<36).map { width in Self.keeping { $0.maxWidth = width } }
    let (plan, results) = try process(file.bytes, configurations)
    for result in results {
      let result = try result.get()
      #expect(GainMapImage.parts(of: result.bytes) != nil)
      #expect(result.report.peakMemoryByteCount <= plan.workingSetByteCount)
    }
  }

  @Test("need no more memory than planned, in a file or without one", arguments: [SpillDirectory?.none, .system])
  func memory(spill: SpillDirectory?) throws {
    let (width, height) = (1000, 752)
    let image = try encodedImage(
      noiseSamples(width * height * 3), width: width, height: height, pixelFormat: .rgb8, as: .jpeg)
    let maps = [
      try Self.map(width: 250, height: 188), try Self.map(width: 1000, height: 752, format: .rgb8),
      try Self.map(width: 500, height: 376, isProgressive: true),
      try Self.map(width: 1000, height: 752, format: .rgb8, isProgressive: true),
    ]
    let rotated = Self.keeping { ($0.maxWidth, $0.compressionQuality, $0.rotation) = (nil, nil, 90) }
    for map in maps {
      let file = GainMapImage(image: image, map: map, styles: [.adobe, .iso])
      for configuration in [Self.keeping { $0.maxWidth = 900 }, Self.keeping { $0.maxWidth = 300 }, rotated] {
        let limits = ImageLimits(memory: 64 << 20, spill: spill)
        var reader = ImageReader(limits: limits)
        reader.configurations = [configuration]
        #expect(try reader.push(file.bytes.span.bytes, isLast: true).isComplete)
        let estimate = try reader.plan(configuration).workingSetByteCount
        let report = try process(file.bytes, configuration, limits: limits).report
        #expect(report.peakMemoryByteCount <= estimate)
        #expect(report.gainMapByteCount > 0 && report.isPassedThrough == (configuration == rotated))
      }
    }
    let file = GainMapImage(image: image, map: maps[0], styles: [.adobe])
    let small = ImageLimits(memory: 2_300_000, spill: spill)
    let (bytes, report) = try process(file.bytes, Self.keeping { $0.maxWidth = 300 }, limits: small)
    #expect(Self.causes(report) == ["memory"] || GainMapImage.parts(of: bytes) != nil)
  }
}
