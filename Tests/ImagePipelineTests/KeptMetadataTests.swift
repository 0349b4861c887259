import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Metadata that results keep")
struct KeptMetadataTests {
  private static let formats: [OutputFormat] = [.jpeg, .png, .webp] + (ImageFormat.avif.isEncodable ? [.avif] : [])
  private static let xmpName = Array("http://ns.adobe.com/xap/1.0/\0".utf8)
  private static let xmp = Array(
    """
    <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
    <rdf:Description rdf:about="" photoshop:City="Dorf" exif:GPSLatitude="48,8N"/></rdf:RDF></x:xmpmeta>
    """.utf8)
  private static let exif = MetadataTests.exif(isBig: true)

  private static func holds(_ bytes: [UInt8], _ text: String) -> Bool {
    let wanted = Array(text.utf8)
    return bytes.indices.dropLast(wanted.count).contains { bytes[$0...].starts(with: wanted) }
  }

  /// JPEGs, PNGs and WebPs with EXIF, XMP and, in the JPEG, IPTC and content credentials.
  private static let images: [(name: String, bytes: [UInt8])] = {
    let iptc = Array("Photoshop 3.0\0".utf8) + Array("8BIM".utf8) + [4, 4, 0, 0, 0, 0, 0, 9, 0x1C, 2, 90, 0, 4]
    let box = [0, 0, 0, 60] + Array("jumb".utf8) + [0, 0, 0, 40] + Array("jumdc2pa".utf8)
    let jpeg = Container.jpeg(
      Fixture.bytes("photo-420.jpg"),
      adding: [
        (0xE1, Array("Exif\0\0".utf8) + exif), (0xE1, xmpName + xmp), (0xED, iptc + Array("Ende\0".utf8)),
        (0xEB, Array("JP".utf8) + [0, 1, 0, 0, 0, 1] + box + [UInt8](repeating: 0, count: 32)),
      ])
    let png = Container.png(
      Fixture.bytes("photo.png"),
      adding: [("eXIf", exif), ("iTXt", Array("XML:com.adobe.xmp\0\0\0\0\0".utf8) + xmp), ("caBX", [1, 2, 3])])
    let webp = Container.webp(Fixture.bytes("photo.webp"), width: 120, height: 80, exif: exif, xmp: xmp)
    return [("jpeg", jpeg), ("png", png), ("webp", webp)]
  }()

  private static func configuration(_ policy: MetadataPolicy?, _ format: OutputFormat) -> ProcessingConfiguration {
    ProcessingConfiguration(maxWidth: 60, preferredFormat: format, metadata: policy)
  }

  @Test("all metadata is kept in every format, except position and serial numbers")
  func all() throws {
    for (name, bytes) in Self.images {
      for format in Self.formats {
        let (result, report) = try process(bytes, Self.configuration(.keepAll, format))
        for text in ["Kamera", "Anna Beispiel", "Dorf"] {
          #expect(Self.holds(result, text), "\(name) \(format) \(text)")
        }
        #expect(!Self.holds(result, "GPSLatitude"))
        #expect(Self.holds(result, "Ende") == (name == "jpeg" && format == .jpeg))
        let hasCredentials = name != "webp"
        #expect(report.warnings.contains { $0.code == .credentialsRemoved } == hasCredentials, "\(name)")
        #expect(try process(result, ProcessingConfiguration()).report.input.orientation == 1)
      }
    }
  }

  @Test("without a policy nothing is kept, read or warned of")
  func none() throws {
    for (_, bytes) in Self.images {
      for format in Self.formats {
        let (result, report) = try process(bytes, Self.configuration(nil, format))
        for text in ["Kamera", "Dorf", "xmpmeta"] { #expect(!Self.holds(result, text)) }
        #expect(!report.warnings.contains { $0.code == .credentialsRemoved })
      }
    }
  }

  @Test("selected parts are kept alone")
  func selected() throws {
    for (name, bytes) in Self.images {
      var configuration = Self.configuration(.selected, .jpeg)
      #expect(try !Self.holds(process(bytes, configuration).bytes, "Anna"))
      configuration.keepXMP = true
      var result = try process(bytes, configuration).bytes
      #expect(
        Self.holds(result, "Dorf") && !Self.holds(result, "Anna") && !Self.holds(result, "GPSLatitude"), "\(name)")
      configuration.keepLocation = true
      #expect(Self.holds(try process(bytes, configuration).bytes, "GPSLatitude=\"48,8N\""))
      (configuration.keepXMP, configuration.keepEXIF) = (false, true)
      result = try process(bytes, configuration).bytes
      #expect(!Self.holds(result, "Dorf") && Self.holds(result, "Anna"), "\(name)")
    }
  }

  @Test(
    "texts of the request are written, whatever is kept", arguments: [MetadataPolicy.strip, .keepCopyright, .keepAll])
  func texts(policy: MetadataPolicy) throws {
    for (name, bytes) in Self.images {
      for format in Self.formats {
        var configuration = Self.configuration(policy, format)
        (configuration.metadataTitle, configuration.metadataCopyright) = ("Ein Titel", "(c) Verlag")
        let result = try process(bytes, configuration).bytes
        #expect(Self.holds(result, ">Ein Titel<") && Self.holds(result, ">(c) Verlag<"), "\(name) \(format)")
        #expect(Self.holds(result, "(c) Verlag\0"))
        #expect(Self.holds(result, "Anna Beispiel") == (policy != .strip))
        #expect(!Self.holds(result, "All rights reserved"))
      }
    }
  }

  @Test("texts have no control characters", arguments: ["a\0", "a\r", "a\u{7F}", "a\u{80}b", "a\u{85}b", "\u{9F}"])
  func controls(text: String) {
    var configuration = ProcessingConfiguration()
    configuration.metadataTitle = text
    #expect(throws: PipelineError.self) { try configuration.validate() }
    configuration.metadataTitle = "a\tb\n\u{A0}\u{AD}"
    #expect(throws: Never.self) { try configuration.validate() }
  }

  @Test("content credentials of AVIF are found", .enabled(if: ImageFormat.avif.isDecodable))
  func credentials() throws {
    let plain = Fixture.bytes("photo.avif")
    let identifier: [UInt8] = [
      0xD8, 0xFE, 0xC3, 0xD6, 0x1B, 0x0E, 0x48, 0x3C, 0x92, 0x97, 0x58, 0x28, 0x87, 0x7E, 0xC4, 0x81,
    ]
    let signed = plain + [0, 0, 0, 28] + Array("uuid".utf8) + identifier + [1, 2, 3, 4]
    for (bytes, isSigned) in [(plain, false), (signed, true)] {
      let warnings = try process(bytes, Self.configuration(.keepAll, .jpeg)).report.warnings
      #expect(warnings.contains { $0.code == .credentialsRemoved } == isSigned)
    }
  }

  @Test(
    "metadata that an HEIC image shares is kept, also where the sizes of its references have 8 bytes",
    .enabled(if: ImageFormat.heic.isDecodable), arguments: [false, true])
  func shared(hasLongReferences: Bool) throws {
    var file = HEIFFile(brand: "heic")
    let coded = HEIFFile.Coded(fixture: "photo.heic")
    let images = [file.add(coded), file.add(coded)]
    file.refer("cdsc", from: file.add("mime", data: Self.xmp), to: images)
    file.hasLongReferences = hasLongReferences
    let (bytes, _) = try process(file.bytes, Self.configuration(.keepAll, .jpeg))
    #expect(Self.holds(bytes, "Dorf"))
  }

  @Test(
    "shared metadata of an HEIC that is too large is left out as a whole", .enabled(if: ImageFormat.heic.isDecodable))
  func sharedPieces() throws {
    var file = HEIFFile(brand: "heic")
    let coded = HEIFFile.Coded(fixture: "photo.heic")
    let images = [file.add(coded), file.add(coded)]
    let xmp = file.add("mime", data: Self.xmp + [UInt8](repeating: 0x20, count: 70_000))
    file.refer("cdsc", from: xmp, to: images)
    file.pieces = [xmp: Self.xmp.count + 10_000]
    let (bytes, _) = try process(file.bytes, Self.configuration(.keepAll, .jpeg))
    #expect(!Self.holds(bytes, "Dorf"))
  }

  @Test("the author of a PNG without EXIF is kept as EXIF")
  func author() throws {
    let png = Container.png(Fixture.bytes("photo.png"), adding: [("tEXt", Array("Author\0Anna Beispiel".utf8))])
    for format in Self.formats {
      #expect(Self.holds(try process(png, Self.configuration(.keepAll, format)).bytes, "Anna Beispiel"), "\(format)")
    }
  }

  @Test("an image that is passed through keeps the same metadata")
  func passthrough() throws {
    for (name, bytes) in Self.images {
      var configuration = ProcessingConfiguration(metadata: .keepAll)
      configuration.rotation = 270  // the EXIF orientation, undone
      var reader = ImageReader(limits: ImageLimits(), keepsMetadata: true)
      #expect(try reader.push(bytes.span.bytes, isLast: true).isComplete)
      let plan = try reader.plan(configuration)
      let (result, report) = try process(bytes, configuration)
      #expect(report.isPassedThrough == (name != "png"), "\(name)")
      #expect(report.peakMemoryByteCount <= plan.workingSetByteCount)
      for text in ["Kamera", "Anna Beispiel", "Dorf"] { #expect(Self.holds(result, text), "\(name) \(text)") }
      #expect(!Self.holds(result, "GPSLatitude") && !Self.holds(result, "c2pa") && !Self.holds(result, "caBX"))
    }
  }

  @Test("large metadata is counted", arguments: formats)
  func memory(format: OutputFormat) throws {
    let text = String(repeating: "Text ", count: 12_000)
    let block = Array("<rdf:RDF><a:b>\(text)</a:b></rdf:RDF>".utf8)
    let bytes = Container.jpeg(Fixture.bytes("photo-420.jpg"), adding: [(0xE1, Self.xmpName + block)])
    var reader = ImageReader(limits: ImageLimits(), keepsMetadata: true)
    #expect(try reader.push(bytes.span.bytes, isLast: true).isComplete)
    let configuration = Self.configuration(.keepAll, format)
    let estimate = try reader.plan(configuration).workingSetByteCount
    let (result, report) = try process(bytes, configuration)
    #expect(report.peakMemoryByteCount <= estimate && Self.holds(result, "Text Text"))
  }
}
