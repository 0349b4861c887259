import ImageCodecs
import TestSupport
import Testing

@Suite("Formats")
struct ImageFormatTests {
  @Test("are told from their first bytes", arguments: Fixture.names)
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
    "that need not be decoded are named all the same",
    arguments: [
      ([0x49, 0x49, 0x2A, 0, 8, 0, 0, 0], ImageFormat.tiff),
      ([0, 0, 0, 0x1C] + Array("ftypavif".utf8) + [0, 0, 0, 0] + Array("avifmif1".utf8), .avif),
      ([0, 0, 0, 0x18] + Array("ftypheic".utf8) + [0, 0, 0, 0] + Array("mif1".utf8), .heic),
      ([0xFF, 0x0A, 0, 0], .jxl), ([0, 0, 1, 0, 1, 0, 16, 16], .ico), (Array("qoif0000".utf8), .qoi),
    ] as [([UInt8], ImageFormat)])
  func named(bytes: [UInt8], format: ImageFormat) {
    #expect(ImageFormat.sniff(bytes.span.bytes) == format)
  }

  @Test("without a decoder get none", arguments: ImageFormat.allCases.filter { !$0.isDecodable })
  func notDecoded(format: ImageFormat) {
    let error = #expect(throws: CodecError.self) {
      _ = try Decoder(
        format: format, limits: CodecLimits(maxPixels: 0, maxHeldPixels: 0, maxScans: 0),
        budget: PictureBudget(limit: 1 << 20))
    }
    #expect(error?.code == .unsupported)
    #expect(error?.message.contains(format.rawValue) == true)
  }

  @Test("are not seen in text or noise")
  func unknown() {
    for bytes in [Array("hello, world, this is not a picture".utf8), [UInt8](repeating: 0, count: 40), [1], []] {
      #expect(ImageFormat.sniff(bytes.span.bytes) == nil)
    }
  }
}
