import Foundation
import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Metadata")
struct MetadataTests {
  private static let formats: [OutputFormat] =
    [.jpeg, .png, .webp] + (ImageFormat.avif.isEncodable ? [.avif] : []) + (ImageFormat.jxl.isEncodable ? [.jxl] : [])
  private static let secrets = [
    "Exif", "exif", "eXIf", "GPS", "Kamera", "Anna Beispiel", "All rights", "ICC", "iCCP", "XMP",
  ]

  /// Returns a TIFF block with camera, orientation, artist, copyright and a GPS position.
  static func exif(
    isBig: Bool, artist: String = "Anna Beispiel", copyright: String = "All rights reserved"
  ) -> [UInt8] {
    func number(_ value: Int, _ byteCount: Int) -> [UInt8] {
      isBig
        ? Container.bigEndian(value, byteCount: byteCount) : Container.littleEndian(value, byteCount: byteCount)
    }
    let texts: [(tag: Int, bytes: [UInt8])] = [
      (0x0110, Array("Kamera 1\0".utf8)), (0x013B, Array((artist + "\0").utf8)),
      (0x8298, Array((copyright + "\0").utf8)),
    ]
    let entryCount = texts.count + 2
    var end = 8 + 2 + 12 * entryCount + 4
    var (directory, values): ([UInt8], [UInt8]) = ([], [])
    func append(_ tag: Int, _ type: Int, _ count: Int, _ value: [UInt8]) {
      directory += number(tag, 2) + number(type, 2) + number(count, 4) + value
    }
    append(0x0112, 3, 1, number(6, 2) + [0, 0])
    for (tag, bytes) in texts {
      if bytes.count <= 4 {
        append(tag, 2, bytes.count, bytes + [UInt8](repeating: 0, count: 4 - bytes.count))
      } else {
        append(tag, 2, bytes.count, number(end, 4))
        values += bytes
        end += bytes.count
      }
    }
    append(0x8825, 4, 1, number(end, 4))
    let gps = number(1, 2) + number(1, 2) + number(2, 2) + number(2, 4) + Array("N\0\0\0".utf8) + number(0, 4)
    let start = Array((isBig ? "MM\0*" : "II*\0").utf8) + number(8, 4) + number(entryCount, 2)
    return start + directory + number(0, 4) + values + gps
  }

  private static func images(_ block: [UInt8]) throws -> [(String, [UInt8])] {
    let segment = (marker: UInt8(0xE1), body: Array("Exif\0\0".utf8) + block)
    let comment = (marker: UInt8(0xFE), body: Array("XMP".utf8))
    let webp = try process(Fixture.bytes("photo-444.jpg"), ProcessingConfiguration(preferredFormat: .webp)).bytes
    let size = try Pixels.decode(webp).layout[0]
    return [
      ("jpeg", Container.jpeg(Fixture.bytes("photo-420.jpg"), adding: [segment, comment])),
      ("png", Container.png(Fixture.bytes("photo.png"), adding: [("eXIf", block), ("tEXt", Array("XMP\0x".utf8))])),
      ("webp", Container.webp(webp, width: size.width, height: size.height, exif: block)),
    ]
  }

  @Test("an orientation that follows a PNG's image data is ignored, with a warning", arguments: [1, 4096, .max])
  func lateOrientation(windowByteCount: Int) throws {
    let image = Fixture.bytes("photo.png")
    let chunk = Container.pngChunk("eXIf", Self.exif(isBig: true) + [UInt8](repeating: 0, count: 2000))
    let bytes = Array(image.dropLast(12)) + chunk + Array(image.suffix(12))
    for isEncoded in [false, true] {
      let configuration = ProcessingConfiguration(alwaysEncode: isEncoded)
      let result = try process(bytes, configuration, windowByteCount: windowByteCount)
      #expect(result.report.isPassedThrough != isEncoded)
      #expect(result.report.messages == ["the EXIF orientation was ignored, because it follows the image data"])
      #expect(result.bytes == (try process(image, configuration).bytes))
    }
  }

  private static func holds(_ bytes: [UInt8], _ text: String) -> Bool {
    Data(bytes).range(of: Data(text.utf8)) != nil
  }

  @Test("nothing is kept by default, for any input and output format", arguments: formats)
  func strips(format: OutputFormat) throws {
    for (name, bytes) in try Self.images(Self.exif(isBig: true)) {
      for policy in [nil, MetadataPolicy.strip] {
        let configuration = ProcessingConfiguration(maxWidth: 60, preferredFormat: format, metadata: policy)
        let result = try process(bytes, configuration).bytes
        for secret in Self.secrets { #expect(!Self.holds(result, secret), "\(secret) of \(name)") }
      }
    }
  }

  @Test("only artist and copyright are kept if requested", arguments: formats, [false, true])
  func keeps(format: OutputFormat, isBig: Bool) throws {
    let configuration = ProcessingConfiguration(maxWidth: 60, preferredFormat: format, metadata: .keepCopyright)
    for (name, bytes) in try Self.images(Self.exif(isBig: isBig)) {
      let result = try process(bytes, configuration)
      for text in ["Anna Beispiel\0", "All rights reserved\0"] { #expect(Self.holds(result.bytes, text), "\(name)") }
      for text in ["Kamera", "XMP", "GPS"] { #expect(!Self.holds(result.bytes, text), "\(name)") }
      // Decoded again, the result is upright: the old orientation was applied and is not stored.
      let again = try process(result.bytes, ProcessingConfiguration(preferredFormat: .png, metadata: .keepCopyright))
      #expect(again.report.input.orientation == 1 && again.report.messages.isEmpty)
      #expect(again.report.input.size == result.report.output.size)
      #expect(Self.holds(again.bytes, "Anna Beispiel\0"))
      for windowByteCount in [1, 4096] {
        #expect(try process(bytes, configuration, windowByteCount: windowByteCount).bytes == result.bytes)
      }
    }
  }

  @Test("of an image with regions, no long text is kept")
  func longTexts() throws {
    let exif = Self.exif(isBig: true, artist: "Anna Beispiel", copyright: String(repeating: "long ", count: 600))
    var kept = ProcessingConfiguration(maxWidth: 60, preferredFormat: .jpeg, metadata: .keepCopyright)
    for (name, bytes) in try Self.images(exif) {
      kept.regions = nil
      #expect(try Self.holds(process(bytes, kept).bytes, "long long"), "\(name)")
      kept.regions = [Region(area: Crop(x: 2, y: 2, width: 9, height: 9))]
      let hiding = try process(bytes, kept).bytes
      #expect(Self.holds(hiding, "Anna Beispiel\0") && !Self.holds(hiding, "long long"), "\(name)")
    }
  }

  @Test("an image that names neither gets no EXIF", arguments: formats)
  func nothingToKeep(format: OutputFormat) throws {
    let kept = ProcessingConfiguration(maxWidth: 60, preferredFormat: format, metadata: .keepCopyright)
    let stripped = ProcessingConfiguration(maxWidth: 60, preferredFormat: format)
    for bytes in [
      Fixture.bytes("photo.png"), try Self.images(Self.exif(isBig: true, artist: "", copyright: " "))[0].1,
    ] {
      #expect(try process(bytes, kept).bytes == process(bytes, stripped).bytes)
    }
  }

  @Test("a PNG's texts are used too, unless EXIF has the same field")
  func texts() throws {
    let latin = Array("Copyright\0".utf8) + [0xA9] + Array(" K\u{E4}the".unicodeScalars.map { UInt8($0.value) })
    let international = Array("Author\0\0\0de\0Urheber\0Käthe".utf8)
    let kept = ProcessingConfiguration(preferredFormat: .jpeg, metadata: .keepCopyright)
    let texts = [("tEXt", latin), ("iTXt", international)]
    let result = try process(Container.png(Fixture.bytes("photo.png"), adding: texts), kept).bytes
    #expect(Self.holds(result, "© Käthe\0") && Self.holds(result, "Käthe\0"))
    let exif = ("eXIf", Self.exif(isBig: false))
    for chunks in [[exif] + texts, texts + [exif]] {
      let both = try process(Container.png(Fixture.bytes("photo.png"), adding: chunks), kept).bytes
      #expect(Self.holds(both, "Anna Beispiel\0") && !Self.holds(both, "Käthe"))
    }
    let broken: [[UInt8]] = [
      [], Array("Author".utf8), Array("Author\0".utf8), Array("Author\0\0\0".utf8), Array("Author\0\0\0\0".utf8),
    ]
    for body in broken {
      for type in ["tEXt", "iTXt"] {
        let image = Container.png(Fixture.bytes("photo.png"), adding: [(type, body)])
        #expect(!Self.holds(try process(image, kept).bytes, "Exif"))
      }
    }
  }

  @Test("metadata after a PNG's data is kept only in a PNG result")
  func lateTexts() throws {
    let png = Fixture.bytes("photo.png")
    let late: [(String, [UInt8])] = [
      ("tEXt", Array("Copyright\0Anna Beispiel".utf8)), ("eXIf", Self.exif(isBig: true)),
    ]
    for (type, body) in late {
      let bytes = png.dropLast(12) + Container.pngChunk(type, body) + png.suffix(12)
      for (format, isKept) in [(OutputFormat.png, true), (.jpeg, false)] {
        let kept = ProcessingConfiguration(maxWidth: 60, preferredFormat: format, metadata: .keepCopyright)
        let result = try process(Array(bytes), kept)
        #expect(Self.holds(result.bytes, "Anna Beispiel\0") == isKept, "\(type) in \(format)")
        #expect(result.report.input.orientation == 1 && !Self.holds(result.bytes, "Kamera"))
        #expect(try process(Array(bytes), kept, windowByteCount: 7).bytes == result.bytes)
        let again = try process(result.bytes, kept)
        #expect(Self.holds(again.bytes, "Anna Beispiel\0") == isKept && again.report.messages.isEmpty)
        let stripped = ProcessingConfiguration(maxWidth: 60, preferredFormat: format)
        #expect(!Self.holds(try process(Array(bytes), stripped).bytes, "Anna"))
      }
    }
  }

  @Test("long texts are truncated, short ones fit their entry, broken blocks are harmless", arguments: formats)
  func lengths(format: OutputFormat) throws {
    let kept = ProcessingConfiguration(maxWidth: 8, preferredFormat: format, metadata: .keepCopyright)
    let long = String(repeating: "abcdefghij", count: 2000)
    for (_, bytes) in try Self.images(Self.exif(isBig: false, artist: "A B", copyright: long)) {
      let result = try process(bytes, kept)
      #expect(Self.holds(result.bytes, "A B\0") && Self.holds(result.bytes, String(long.prefix(4095)) + "\0"))
    }
    let block = Self.exif(isBig: true)
    let noise = noiseSamples(block.count)
    for place in stride(from: 0, to: block.count, by: 2) {
      var damaged = block
      damaged[place] ^= noise[place] | 1
      for body in [damaged, Array(block.prefix(place))] {
        let segment = (marker: UInt8(0xE1), body: Array("Exif\0\0".utf8) + body)
        _ = try process(Container.jpeg(Fixture.bytes("orientation-1.jpg"), adding: [segment]), kept)
      }
    }
  }
}
