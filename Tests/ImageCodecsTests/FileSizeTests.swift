import ImageCodecs
import TestSupport
import Testing

/// Files whose size, or the size of a part, contradicts their header.
@Suite("File sizes")
struct FileSizeTests {
  private static let side = 9000

  private static func bigEndian(_ value: Int) -> [UInt8] { Container.bigEndian(value, byteCount: 4) }

  private static func expectRefusal(_ bytes: [UInt8], _ comment: Comment) {
    let budget = ImageBudget(limit: 1 << 30)
    let error = #expect(throws: CodecError.self, comment) { _ = try Pixels.decode(bytes, budget: budget) }
    #expect(error?.code == .truncated && error?.message.contains("\(side)x\(side)") == true, comment)
    #expect(budget.peak < 1 << 20, comment)
  }

  @Test("a file far too small for the size in its header is refused before any allocation")
  func contradicted() {
    let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    // Interlaced: the whole bitmap would be buffered.
    let header = Container.pngChunk("IHDR", Self.bigEndian(Self.side) + Self.bigEndian(Self.side) + [8, 6, 0, 0, 1])
    let data = Container.pngChunk("IDAT", Container.stored([UInt8](repeating: 0, count: 400)))
    Self.expectRefusal(signature + header + data + Container.pngChunk("IEND", []), "PNG")
    let text = Array("P6\n\(Self.side) \(Self.side)\n255\n".utf8)
    Self.expectRefusal(text + [UInt8](repeating: 7, count: 100), "PNM")
  }

  /// A block of a sequential JPEG takes at least two bits, a block of a progressive one at least one.
  ///
  /// CMYK images are decoded by libjpeg-turbo.
  @Test(
    "a JPEG that is too small for its header is refused",
    arguments: ["photo-420.jpg", "photo-gray.jpg", "photo-progressive.jpg", "photo-cmyk.jpg"])
  func jpeg(name: String) throws {
    var bytes = Fixture.bytes(name)
    let frame = try #require(
      bytes.indices.dropLast(9).first { bytes[$0] == 0xFF && [0xC0, 0xC2].contains(bytes[$0 + 1]) })
    let side = Container.bigEndian(Self.side, byteCount: 2)
    bytes.replaceSubrange(frame + 5..<frame + 9, with: side + side)
    Self.expectRefusal(bytes, "\(name)")
  }

  @Test(
    "a Photoshop document that is too small for its header is refused", arguments: Container.PSDCompression.allCases)
  func psd(compression: Container.PSDCompression) throws {
    var bytes = Container.psd(
      width: 4, height: 4, bitDepth: 8, mode: 3,
      channels: [[UInt8]](repeating: [UInt8](repeating: 90, count: 16), count: 3), compression: compression)
    #expect(try Pixels.decode(bytes).mean == [90, 90, 90])
    bytes.replaceSubrange(14..<22, with: Self.bigEndian(Self.side) + Self.bigEndian(Self.side))
    Self.expectRefusal(bytes, "PSD")
  }

  @Test("an arithmetic-coded image has no minimum size, and is decoded")
  func arithmetic() throws {
    let flat = Fixture.bytes("photo-arithmetic.jpg")
    #expect(throws: Never.self) { _ = try Pixels.decode(flat) }
  }

  @Test("a TIFF whose uncompressed data exceed the file is refused", .enabled(if: ImageFormat.tiff.isDecodable))
  func tiff() throws {
    func file(side: Int, stripByteCount: Int) -> [UInt8] {
      Container.tiff(
        width: side, height: side, bitDepth: 8, sampleCount: 1, photometric: 1,
        samples: [UInt8](repeating: 90, count: 64), stripByteCount: stripByteCount)
    }
    Self.expectRefusal(file(side: Self.side, stripByteCount: Self.side * Self.side), "TIFF")
    #expect(try Pixels.decode(file(side: 8, stripByteCount: 64)).mean == [90, 90, 90])
  }

  @Test("an icon's image ends where its own header specifies, not where the directory does")
  func icon() throws {
    for (name, entry) in [("icon-png.ico", 22), ("icon-bitmap.ico", 6)] {
      let bytes = Fixture.bytes(name)
      let whole = try Pixels.decode(bytes)
      for claimed in [1, 60, 100] {
        var lying = bytes + [UInt8](repeating: 0xAA, count: 99)
        lying.replaceSubrange(entry + 8..<entry + 12, with: Container.littleEndian(claimed, byteCount: 4))
        for windowByteCount in [1, 7, Int.max] {
          let pixels = try Pixels.decode(lying, windowByteCount: windowByteCount)
          #expect(pixels == whole, "\(name), \(claimed) bytes claimed, windows of \(windowByteCount)")
        }
      }
    }
  }

  /// Formats that can store any number of pixels in a few bytes.
  @Test("a few bytes may contain 10 megapixels, but not many more", arguments: ["bmp", "gif"])
  func proportion(format: String) {
    func file(side: Int) -> [UInt8] {
      let two = Container.littleEndian(side, byteCount: 2)
      switch format {
      case "gif":
        // A frame of one pixel on a cleared canvas.
        return Array("GIF89a".utf8) + two + two + [0x80, 0, 0, 1, 2, 3, 4, 5, 6, 0x21, 0xF9, 4, 1, 0, 0, 0, 0, 0x2C]
          + [0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3B]
      case "bmp":
        let four = Container.littleEndian(side, byteCount: 4)
        let info = [40, 0, 0, 0] + four + four + [1, 0, 8, 0, 1, 0, 0, 0] + [UInt8](repeating: 0, count: 12)
        return Array("BM".utf8) + [UInt8](repeating: 0, count: 8) + [62, 0, 0, 0] + info
          + [2, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 0, 1, 2, 3, 0, 0, 1]
      default: preconditionFailure(format)
      }
    }
    for side in [4000, 20_000] {
      let error = #expect(throws: CodecError.self) { try Pixels.decode(file(side: side)) }
      #expect(error?.code == .limitExceeded && error?.message.contains("max_pixels_per_byte") == true)
      #expect(error?.limit?.name == "max_pixels_per_byte" && error?.limit?.limit == 49152)
      #expect(error?.limit?.value ?? 0 > 49152)
    }
    #expect(throws: Never.self) { try Pixels.decode(file(side: 3000)) }
  }
}
