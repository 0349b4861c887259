import CCodecs
import Foundation
import ImageCodecs
import TestSupport
import Testing

@Suite("Formats")
struct ImageFormatTests {
  @Test("are recognized by their first bytes", arguments: Fixture.names)
  func sniffed(name: String) throws {
    let bytes = Array(Fixture.bytes(name).prefix(ImageFormat.sniffByteCount))
    let byExtension: [String: ImageFormat] = [
      "jpg": .jpeg, "png": .png, "webp": .webp, "gif": .gif, "bmp": .bmp, "tga": .tga, "psd": .psd, "ppm": .pnm,
      "pgm": .pnm, "pbm": .pnm, "pam": .pnm, "hdr": .hdr, "tiff": .tiff, "avif": .avif, "heic": .heic, "jxl": .jxl,
      "ico": .ico,
    ]
    let suffix = try #require(name.split(separator: ".").last.map(String.init))
    #expect(ImageFormat.sniff(bytes.span.bytes) == byExtension[suffix])
  }

  @Test(
    "that are not decoded are still recognized",
    arguments: [
      ([0x49, 0x49, 0x2A, 0, 8, 0, 0, 0], ImageFormat.tiff),
      ([0, 0, 0, 0x1C] + Array("ftypavif".utf8) + [0, 0, 0, 0] + Array("avifmif1".utf8), .avif),
      ([0, 0, 0, 0x18] + Array("ftypheic".utf8) + [0, 0, 0, 0] + Array("mif1".utf8), .heic),
      ([0, 0, 0, 0x18] + Array("ftypmif1".utf8) + [0, 0, 0, 0] + Array("avif".utf8), .avif),
      ([0xFF, 0x0A, 0, 0], .jxl), ([0, 0, 1, 0, 1, 0, 16, 16], .ico), (Array("qoif0000".utf8), .qoi),
    ] as [([UInt8], ImageFormat)])
  func named(bytes: [UInt8], format: ImageFormat) {
    #expect(ImageFormat.sniff(bytes.span.bytes) == format)
  }

  @Test("have a row each, with one name in C and Swift")
  func rows() {
    let formats = (0..<CCODECS_FORMAT_END.rawValue).map { ccodecs_format(rawValue: $0) }
    let names = formats.map { String(cString: ccodecs_format_name($0)) }
    #expect(names.first == "unknown")
    #expect(Set(names.dropFirst()) == Set(ImageFormat.allCases.map(\.rawValue)))
    #expect(names.count == ImageFormat.allCases.count + 1)
    for format in ImageFormat.allCases {
      let handles = zip(formats, names).filter { $0.1 == format.rawValue }.map(\.0)
      #expect(handles.map(ccodecs_format_can_decode) == [format.isDecodable], "\(format)")
      #expect(handles.map(ccodecs_format_can_rewrite) == [format.isRewritable], "\(format)")
    }
  }

  @Test("that can be decoded have a fixture, and are fuzzed", arguments: ImageFormat.allCases.filter(\.isDecodable))
  func tested(format: ImageFormat) throws {
    let isFixture = Fixture.names.contains { name in
      ImageFormat.sniff(Array(Fixture.bytes(name).prefix(ImageFormat.sniffByteCount)).span.bytes) == format
    }
    #expect(isFixture, "no file of Tests/TestSupport/Fixtures is \(format)")
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../Fuzz/run.sh")
    let words = try String(contentsOf: script, encoding: .utf8).split { " \n\"'".contains($0) }
    #expect(words.contains { $0 == format.rawValue.uppercased() }, "the table of Tests/Fuzz/run.sh has no \(format)")
  }

  @Test("that can be encoded have a row as results; three accept 16 bits per sample", arguments: ImageFormat.allCases)
  func outputs(format: ImageFormat) {
    let taken = PixelFormat.allCases.filter(format.takes)
    #expect(!format.isEncodable || format.traits.output != nil)
    #expect((format.traits.output != nil) == taken.contains(.rgb8))
    #expect([.png, .avif, .jxl].contains(format) || taken.allSatisfy { !$0.is16Bit })
    #expect(taken.contains(.rgb16) == taken.contains(.rgba16))
    #expect(!format.isRewritable || format.isEncodable)
  }

  @Test("without a decoder cannot create one", arguments: ImageFormat.allCases.filter { !$0.isDecodable })
  func notDecoded(format: ImageFormat) {
    let error = #expect(throws: CodecError.self) {
      _ = try Decoder(
        format: format, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0),
        budget: ImageBudget(limit: 1 << 20))
    }
    #expect(error?.code == .unsupported)
    #expect(error?.message.contains(format.rawValue) == true)
  }

  @Test("are not recognized in text or noise")
  func unknown() {
    // The second one is a video whose box size looks like the signature of an icon.
    let film = [0, 0, 1, 0] + Array("ftypisom".utf8) + [0, 0, 2, 0] + Array("isomiso2".utf8)
    for bytes in [Array("hello, world, this is not an image".utf8), film, [UInt8](repeating: 0, count: 40), [1], []] {
      #expect(ImageFormat.sniff(bytes.span.bytes) == nil)
    }
  }
}
