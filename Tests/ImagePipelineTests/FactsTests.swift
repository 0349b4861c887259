import Foundation
import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

/// Tests of facts; `Tests/EndToEnd/test_facts.py` compares them with those of Python packages.
@Suite("Facts")
struct FactsTests {
  private static func facts(
    _ image: [UInt8], _ configuration: ProcessingConfiguration = ProcessingConfiguration(), windowByteCount: Int = .max
  ) throws -> ImageFacts {
    var configuration = configuration
    (configuration.facts, configuration.alwaysEncode) = (true, true)
    return try #require(try process(image, configuration, windowByteCount: windowByteCount).report.facts)
  }

  /// What imagehash 4.3, thumbhash-python 1.0 and blurhash 1.1 compute of `Image.reduce` of Pillow.
  ///
  /// The alpha of `alpha.png` rises evenly, so that most of its waves are 0, between two steps of a ThumbHash. The package
  /// rounds them up or down by their rounding errors, and this up.
  @Test(
    "hashes are those of the Python packages",
    arguments: [
      (
        "photo.png", 0xe9c9_30b2_d56c_c731 as UInt64, 0x1313_5313_1b0b_8f1f as UInt64,
        "qBgKDYD/1mOcYmxlioeHeB+G5mBX", "LSLD=A~V?bbb?axtD*NGM|Rjxaoe"
      ),
      (
        "alpha.png", 0xe9c9_30b6_956c_c731, 0x1313_5313_1b0b_8f9f, "phiGA4A4/Jd6cmQPR9aAVYiIgIiIeIg=",
        "LRK^+:~V?bbb?axtD%NGIoRjxaoe"
      ),
      (
        "gray.png", 0xe9c9_30b2_d56c_c731, 0x1313_5313_1b0b_8f1f, "KAgKBYDv1mOcY2xlioeHeAAAAAAA",
        "LNK1%f~q_3of?bxuD%RjM{Rjxuof"
      ),
    ])
  func known(name: String, perceptual: UInt64, difference: UInt64, thumb: String, blur: String) throws {
    let facts = try Self.facts(Fixture.bytes(name), ProcessingConfiguration(preferredFormat: .png))
    #expect(facts.perceptualHash == perceptual && facts.differenceHash == difference)
    #expect(Data(facts.thumbHash).base64EncodedString() == thumb)
    #expect(facts.blurHash == blur)
    #expect(facts.detailedBlurHash.count == 4 + 2 * 81)
    #expect(facts.isGray == (name == "gray.png") && facts.isOpaque == (name != "alpha.png"))
    #expect(facts.isPhotographic)
  }

  @Test("the mean color and the dominant colors are those of the pixels")
  func colors() throws {
    // Three quarters red, one quarter blue.
    let (red, blue): ([UInt8], [UInt8]) = ([250, 10, 20], [10, 20, 240])
    let rows = (0..<40).flatMap { _ in (0..<80).flatMap { $0 < 60 ? red : blue } }
    let image = Array("P6 80 40 255\n".utf8) + rows
    let facts = try Self.facts(image, ProcessingConfiguration(preferredFormat: .png))
    #expect(facts.meanColor == Color(red: 190, green: 13, blue: 75))
    #expect(
      facts.dominantColors == [
        ImageFacts.DominantColor(color: Color(red: 250, green: 10, blue: 20), share: 0.75),
        ImageFacts.DominantColor(color: Color(red: 10, green: 20, blue: 240), share: 0.25),
      ])
    #expect(!facts.isPhotographic && !facts.isGray && facts.isOpaque)
  }

  @Test(
    "results are the same with and without facts",
    arguments: ["photo-420.jpg", "alpha.png", "gray-16.png", "photo-cmyk.jpg"])
  func sameResults(name: String) throws {
    for format in [OutputFormat.jpeg, .png, .webp] {
      for width in [nil, 50] {
        let plain = ProcessingConfiguration(
          maxWidth: width, compressionQuality: 0.8, preferredFormat: format, alwaysEncode: true)
        var asked = plain
        asked.facts = true
        let (one, other) = (try process(Fixture.bytes(name), plain), try process(Fixture.bytes(name), asked))
        #expect(one.bytes == other.bytes)
        #expect(one.report.facts == nil && other.report.facts != nil)
      }
    }
  }

  @Test("facts are those of the displayed image, whatever its stored orientation", arguments: 1...8)
  func orientations(orientation: Int) throws {
    let png = ProcessingConfiguration(preferredFormat: .png)
    let upright = try Self.facts(Fixture.bytes("orientation-1.png"), png)
    #expect(try Self.facts(Fixture.bytes("orientation-\(orientation).png"), png) == upright)
  }

  @Test("cells of odd sizes start at the displayed corner", arguments: [0, 90, 180, 270])
  func oddSizes(rotation: Int) throws {
    // 101 columns of 2 to a cell: the last cell is half as wide.
    let shade: (Int, Int) -> UInt8 = { x, y in UInt8((x * 7 + y * 13) % 256) }
    let image = Array("P5 101 43 255\n".utf8) + (0..<43).flatMap { y in (0..<101).map { shade($0, y) } }
    var configuration = ProcessingConfiguration(preferredFormat: .png, rotation: rotation)
    let rotated = try Self.facts(image, configuration)
    configuration.facts = nil
    let result = try process(image, configuration).bytes
    #expect(rotated == (try Self.facts(result, ProcessingConfiguration(preferredFormat: .png))))
  }

  @Test("facts precede filters and padding, and follow the crop")
  func place() throws {
    let image = Fixture.bytes("photo.png")
    let plain = try Self.facts(image, ProcessingConfiguration(maxWidth: 60, preferredFormat: .png))
    let filtered = ProcessingConfiguration(
      maxWidth: 60, maxHeight: 200, preferredFormat: .png, pad: true,
      filters: [Filter(name: "invert"), Filter(name: "blur", parameters: ["radius": 3])])
    #expect(try Self.facts(image, filtered) == plain)
    let crop = ProcessingConfiguration(
      maxWidth: 60, preferredFormat: .png, crop: Crop(x: 10, y: 10, width: 60, height: 40))
    #expect(try Self.facts(image, crop) != plain)
  }

  @Test("alpha counts also where the result has none")
  func flattened() throws {
    let jpeg = try Self.facts(Fixture.bytes("alpha.png"), ProcessingConfiguration(preferredFormat: .jpeg))
    let png = try Self.facts(Fixture.bytes("alpha.png"), ProcessingConfiguration(preferredFormat: .png))
    #expect(!jpeg.isOpaque && jpeg == png)
    let deep = try Self.facts(Fixture.bytes("deep-alpha.png"), ProcessingConfiguration(preferredFormat: .jpeg))
    #expect(!deep.isOpaque)
  }

  @Test("planes and pixels give nearly the same facts", arguments: ["photo-420.jpg", "photo-422.jpg", "photo-odd.jpg"])
  func planes(name: String) throws {
    for width in [nil, 100, 33] {
      let configuration = { (format: OutputFormat) in
        ProcessingConfiguration(maxWidth: width, compressionQuality: 0.8, preferredFormat: format)
      }
      let planes = try Self.facts(Fixture.bytes(name), configuration(.jpeg))
      let pixels = try Self.facts(Fixture.bytes(name), configuration(.png))
      #expect((planes.perceptualHash ^ pixels.perceptualHash).nonzeroBitCount <= 4)
      #expect((planes.differenceHash ^ pixels.differenceHash).nonzeroBitCount <= 3)
      let distance = [
        (planes.meanColor.red, pixels.meanColor.red), (planes.meanColor.green, pixels.meanColor.green),
        (planes.meanColor.blue, pixels.meanColor.blue),
      ].map { abs(Int($0) - Int($1)) }.max()
      #expect(try #require(distance) <= 2)
      #expect(planes.isGray == pixels.isGray && planes.isPhotographic == pixels.isPhotographic)
    }
  }

  @Test("windows do not matter, and small images work", arguments: [1, 7, 4096])
  func windows(windowByteCount: Int) throws {
    let image = Fixture.bytes("photo.png")
    #expect(try Self.facts(image, windowByteCount: windowByteCount) == (try Self.facts(image)))
    let pixel = Array("P6 1 1 255\n".utf8) + [200, 100, 50]
    let facts = try Self.facts(pixel, windowByteCount: windowByteCount)
    #expect(facts.meanColor == Color(red: 200, green: 100, blue: 50) && facts.dominantColors.count == 1)
  }

  @Test("of an animation, the first frame counts")
  func animation() throws {
    let image = Fixture.bytes("animated-transparent.gif")
    let first = try Self.facts(image, ProcessingConfiguration(preferredFormat: .png))
    let all = try Self.facts(image, ProcessingConfiguration(preferredFormat: .png, maxFrames: 0))
    #expect(first == all)
  }

  @Test("each rendition has its own facts, and only if it asks for them")
  func renditions() throws {
    let sizes = [120, 40, 40].enumerated().map { index, width in
      ProcessingConfiguration(maxWidth: width, preferredFormat: .png, facts: index < 2)
    }
    let reports = try process(Fixture.bytes("photo-420.jpg"), sizes).results.map { try $0.get().report }
    #expect(reports[0].facts != nil && reports[1].facts != nil && reports[2].facts == nil)
    #expect(reports[0].facts != reports[1].facts)
  }

  @Test("a result that is passed through has no facts")
  func passedThrough() throws {
    let report = try process(Fixture.bytes("photo.png"), ProcessingConfiguration(facts: true)).report
    #expect(report.isPassedThrough && report.facts == nil)
  }

  @Test("a transparent image has a mean color and no dominant ones")
  func transparent() throws {
    let header = "P7\nWIDTH 30\nHEIGHT 20\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n"
    let image = Array(header.utf8) + [UInt8](repeating: 0, count: 30 * 20 * 4)
    let facts = try Self.facts(image, ProcessingConfiguration(preferredFormat: .png))
    #expect(facts.meanColor == Color(red: 0, green: 0, blue: 0) && facts.dominantColors.isEmpty && !facts.isOpaque)
  }
}
