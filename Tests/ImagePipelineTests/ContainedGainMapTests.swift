import ImageCodecs
import TestSupport
import Testing

@testable import ImagePipeline

@Suite("Gain maps in a directory of GContainer")
struct ContainedGainMapTests {
  private static let image = Fixture.bytes("photo-420.jpg")

  private static func map() throws -> [UInt8] {
    let (width, height) = (60, 40)
    let samples = (0..<width * height).map { UInt8(40 + 120 * ($0 % width) / width + 80 * ($0 / width) / height) }
    return try encodedImage(samples, width: width, height: height, pixelFormat: .gray8, as: .jpeg)
  }

  private static func file(
    _ lists: Set<GainMapImage.List>, image: [UInt8] = image, styles: Set<GainMapImage.Style> = [.adobe, .iso]
  ) throws -> GainMapImage {
    var file = GainMapImage(image: image, map: try map(), styles: styles)
    file.lists = lists
    return file
  }

  private static let keeping = ProcessingConfiguration(maxWidth: 60, compressionQuality: 0.9, gainMap: .keep)

  /// The map that an inspection describes.
  private static func map(in bytes: [UInt8]) -> GainMapInfo? { ImageReader.gainMap(of: bytes.span.bytes) }

  private static func causes(_ report: ProcessingReport) -> [String?] {
    report.warnings.filter { $0.code == .gainMapRemoved }.map { $0.parameters["cause"] }
  }

  @Test("are kept without a multi-picture segment as with one", arguments: [1, 7, 4096, .max])
  func kept(windowByteCount: Int) throws {
    let names = ["photo-420.jpg", "photo-progressive-scans.jpg", "photo-restart.jpg", "photo-arithmetic.jpg"]
    for image in names.map({ Fixture.bytes($0) }) {
      for styles: Set<GainMapImage.Style> in [[.adobe], [.iso], [.adobe, .iso, .apple]] {
        let file = try Self.file([.multiPicture, .directory], image: image, styles: styles)
        let expected = try process(file.bytes, Self.keeping)
        try #require(expected.report.gainMapByteCount > 0)
        for list in [GainMapImage.List.directory, .directoryOfElements] {
          var file = try Self.file([list], image: image, styles: styles)
          (file.padding, file.statedPadding, file.otherItem) = (Array(repeating: 0xD9, count: 40), 10, 30)
          let (bytes, report) = try process(file.bytes, Self.keeping, windowByteCount: windowByteCount)
          #expect(bytes == expected.bytes && Self.causes(report).isEmpty)
          #expect(report.gainMapByteCount == expected.report.gainMapByteCount)
        }
      }
    }
  }

  @Test("are found where the other list is wrong, whichever it is")
  func disagreement() throws {
    let expected = try process(Self.file([.multiPicture]).bytes, Self.keeping).bytes
    func expectFound(_ change: (inout GainMapImage) -> Void) throws {
      var file = try Self.file([.multiPicture, .directory])
      change(&file)
      for windowByteCount in [64, 1000, .max] {
        let (bytes, report) = try process(file.bytes, Self.keeping, windowByteCount: windowByteCount)
        #expect(bytes == expected && Self.causes(report).isEmpty, "\(file.offsetError) \(windowByteCount)")
      }
      #expect(Self.map(in: file.bytes)?.size == PixelSize(width: 60, height: 40))
    }
    try expectFound { _ in }
    for offset in [-5000, -300, -3, -1, 1, 2, 20, 300, 100_000] { try expectFound { $0.offsetError = offset } }
    try expectFound { ($0.offsetError, $0.purpose) = (-40, 0x5_0000) }
    try expectFound { $0.byteCountError = -600 }
    try expectFound { $0.directoryError = -600 }
    for count in [0, 20, 5000] {
      try expectFound { ($0.padding, $0.statedPadding) = (Array(repeating: 0, count: 300), count) }
    }
  }

  @Test("are removed with a warning if they are where the directory puts them no more")
  func damaged() throws {
    let plain = ProcessingConfiguration(maxWidth: 60, compressionQuality: 0.9)
    let expected = try process(Self.image, plain).bytes
    var files = [try Self.file([.directory]), try Self.file([.directory]), try Self.file([.directory])]
    files[0].statedPadding = 77
    files[1].directoryError = -600
    files[2].map = Array(files[2].map.prefix(400))
    for bytes in files.map(\.bytes) + [Array(files[0].bytes.prefix(files[0].imageByteCount))] {
      for windowByteCount in [100, .max] {
        let (result, report) = try process(bytes, Self.keeping, windowByteCount: windowByteCount)
        #expect(result == expected && Self.causes(report) == ["damage"])
      }
    }
  }

  @Test("follow an image that is copied")
  func copied() throws {
    let file = try Self.file([.directory])
    for spill in [SpillDirectory?.none, .system] {
      let limits = ImageLimits(spill: spill)
      let (bytes, report) = try process(file.bytes, ProcessingConfiguration(gainMap: .keep), limits: limits)
      // The size of an image that is copied is not known.
      #expect(report.isPassedThrough && Self.causes(report) == (spill == nil ? ["memory"] : []))
      if spill != nil {
        #expect(try Pixels.decode(#require(GainMapImage.parts(of: bytes)).map) == Pixels.decode(file.map))
      }
    }
  }

  @Test("follow a trim, which reads the image before it is planned")
  func trimmed() throws {
    for image in ["photo-420.jpg", "photo-arithmetic.jpg"] {
      let file = try Self.file([.directory], image: Fixture.bytes(image))
      for windowByteCount in [61, 1000, file.imageByteCount, .max] {
        var configuration = Self.keeping
        configuration.trim = Trim(threshold: 5)
        let (bytes, report) = try process(file.bytes, configuration, windowByteCount: windowByteCount)
        #expect(GainMapImage.parts(of: bytes) != nil && Self.causes(report).isEmpty, "\(image) \(windowByteCount)")
      }
    }
  }

  @Test("are described from the whole file, and not from a part of it")
  func described() throws {
    for list in [GainMapImage.List.directory, .directoryOfElements] {
      let file = try Self.file([list])
      let map = try #require(Self.map(in: file.bytes))
      #expect(map.kind == .iso && map.size == PixelSize(width: 60, height: 40))
      #expect(Self.map(in: Array(file.bytes.prefix(file.imageByteCount))) == nil)
    }
  }

  @Test("cost an image without any list nothing but what its header has", arguments: [64, .max])
  func charge(windowByteCount: Int) throws {
    func charged(_ bytes: [UInt8], _ configuration: ProcessingConfiguration) throws -> Int {
      var reader = ImageReader(limits: ImageLimits())
      reader.configurations = [configuration]
      var (place, isComplete) = (0, false)
      while !isComplete {
        let end = bytes.count - place > windowByteCount ? place + windowByteCount : bytes.count
        let window = bytes.span.bytes.extracting(place..<end)
        let pushed = try reader.push(window, isLast: end == bytes.count)
        (isComplete, place) = (pushed.isComplete, end)
      }
      return reader.budget.used
    }
    var dropping = Self.keeping
    dropping.gainMap = nil
    #expect(try charged(Self.image, Self.keeping) == charged(Self.image, dropping))
    let exif = Array("Exif\0\0".utf8) + Container.exif(orientation: 6)
    let bytes = Container.jpeg(Self.image, adding: [(0xE1, exif)])
    #expect(try charged(bytes, Self.keeping) == charged(bytes, dropping) + exif.count + 4)
    let file = try Self.file([.multiPicture, .directory]).bytes
    let stored = try charged(file, Self.keeping) - charged(file, dropping)
    #expect((400...2000).contains(stored))
  }

  @Test("survive any damage of their file")
  func mutations() throws {
    var generator = SeededGenerator(seed: 5)
    let file = try Self.file([.directory])
    let bytes = file.bytes
    let places = [Int](0..<1200) + [Int](file.imageByteCount - 300..<bytes.count)
    var keptCount = 0
    for _ in 0..<400 {
      var damaged = bytes
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        damaged[places.randomElement(using: &generator) ?? 0] = UInt8.random(in: 0...255, using: &generator)
      }
      if Bool.random(using: &generator) { damaged.removeLast(Int.random(in: 0..<300, using: &generator)) }
      _ = Self.map(in: damaged)
      let limits = ImageLimits(memory: 4 << 20)
      guard let (result, report) = try? process(damaged, Self.keeping, windowByteCount: 700, limits: limits) else {
        continue
      }
      #expect(report.outputByteCount == UInt64(result.count))
      if report.gainMapByteCount > 0 {
        keptCount += 1
        #expect(GainMapImage.parts(of: result) != nil)
      }
    }
    #expect(keptCount > 20)
  }
}
