import ImageCodecs
import TestSupport
import Testing

@Suite("Rewriters")
struct RewriterTests {
  private static let limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 100)
  private static let turnable = [
    "photo-420.jpg", "photo-422.jpg", "photo-444.jpg", "photo-gray.jpg", "photo-progressive.jpg", "photo-restart.jpg",
  ]
  private static let copied =
    turnable + [
      "photo-odd.jpg", "orientation-6.jpg", "photo.png", "alpha.png", "bilevel.png", "gray.png", "palette.png",
      "pngsuite-tbbn3p08.png", "orientation-3.png", "photo.webp", "alpha.webp", "lossless.webp", "orientation-8.webp",
    ]

  private struct Refused: Error {}

  /// Rewrites a whole image; throws `Refused` if its survey does not allow it.
  private static func rewrite(
    _ bytes: [UInt8], windowByteCount: Int = .max, orientation: Orientation = .up, exif: [UInt8] = [],
    limits: CodecLimits = RewriterTests.limits
  ) throws -> [UInt8] {
    guard let format = ImageFormat.sniff(bytes.span.bytes), format.isRewritable else { throw Refused() }
    let budget = ImageBudget(limit: 1 << 28)
    let result = try rewrite(bytes, format, windowByteCount, orientation, exif, limits, budget)
    #expect(budget.used == 0)
    return result
  }

  private static func rewrite(
    _ bytes: [UInt8], _ format: ImageFormat, _ windowByteCount: Int, _ orientation: Orientation, _ exif: [UInt8],
    _ limits: CodecLimits, _ budget: ImageBudget
  ) throws -> [UInt8] {
    var decoder = try Decoder(format: format, limits: limits, budget: budget)
    var rewriter = try Rewriter(format: format, limits: limits, budget: budget)
    var windows = Windows(bytes: bytes, windowByteCount: windowByteCount)
    while true {
      let progress = try decoder.readHeader(windows.current, isLast: windows.isLast)
      rewriter.note(windows.current.extracting(first: progress.consumedByteCount))
      windows.consume(progress.consumedByteCount)
      if progress.value { break }
      windows.advance()
    }
    let survey = rewriter.survey(decoder)
    guard survey.canCopy, orientation == .up || survey.rotations.contains(orientation) else { throw Refused() }
    let metadata = EmbeddedMetadata(exif: exif)
    let estimate = rewriter.estimatedByteCount(decoder, orientation: orientation, metadata: metadata)
    try rewriter.start(decoder, orientation: orientation, metadata: metadata)
    var output: [UInt8] = []
    while true {
      let progress = try rewriter.read(windows.current, isLast: windows.isLast)
      switch progress.value {
      case .pieceReady: rewriter.withPiece { piece in piece.withUnsafeBytes { output.append(contentsOf: $0) } }
      case .needsInput: break
      case .done:
        #expect(UInt64(budget.peak) <= estimate)
        return output
      }
      windows.consume(progress.consumedByteCount)
      if progress.value == .needsInput { windows.advance() }
    }
  }

  private static func header(_ bytes: [UInt8]) throws -> ImageHeader {
    guard let format = ImageFormat.sniff(bytes.span.bytes) else { throw Refused() }
    var decoder = try Decoder(format: format, limits: limits, budget: ImageBudget(limit: 1 << 26))
    guard try decoder.readHeader(bytes.span.bytes, isLast: true).value else { throw Refused() }
    return decoder.header
  }

  @Test("copy an image sample by sample, for any window size", arguments: copied)
  func copies(name: String) throws {
    let bytes = Fixture.bytes(name)
    let copy = try Self.rewrite(bytes)
    for windowByteCount in [1, 7, 4096] {
      #expect(try Self.rewrite(bytes, windowByteCount: windowByteCount) == copy)
    }
    #expect(try Pixels.decode(copy).planes == Pixels.decode(bytes).planes)
    let (before, after) = (try Self.header(bytes), try Self.header(copy))
    #expect(after.orientation == .up && after.copyright.isEmpty && after.warnings.isEmpty)
    #expect(after.width == before.width && after.height == before.height && after.hasAlpha == before.hasAlpha)
    #expect(try Self.rewrite(copy) == copy, "what has no metadata is passed on as it is")
  }

  @Test(
    "leave files alone that a decoder would change",
    arguments: [
      "photo-arithmetic.jpg", "photo-cmyk.jpg", "gray-16.png", "pngsuite-basn2c16.png", "pngsuite-basi2c08.png",
      "animated.webp", "photo.gif",
    ])
  func leavesAlone(name: String) throws {
    #expect(throws: Refused.self) { try Self.rewrite(Fixture.bytes(name)) }
  }

  @Test("drop segments, chunks, trailing bytes and further images", arguments: ["photo-420.jpg", "photo.png"])
  func drops(name: String) throws {
    let bytes = Fixture.bytes(name)
    let secret = Array("secret".utf8)
    let marked =
      name.hasSuffix("jpg")
      ? Container.jpeg(
        bytes,
        adding: [0xE0, 0xE1, 0xE2, 0xE3, 0xED, 0xEF, 0xFE].map { (marker: $0, body: Array("x\0".utf8) + secret) })
      : Container.png(
        bytes,
        adding: ["tEXt", "zTXt", "iTXt", "tIME", "pHYs", "gAMA", "eXIf", "sPLT", "prVt"].map { ($0, secret) })
    let behind = marked + bytes + secret
    for file in [marked, behind] {
      for windowByteCount in [1, 4096, .max] {
        #expect(try Self.rewrite(file, windowByteCount: windowByteCount) == Self.rewrite(bytes))
      }
    }
  }

  @Test("keep the end of a PNG, whatever it contains", arguments: [1, 768, 769, 5000])
  func endWithBody(byteCount: Int) throws {
    let bytes = Fixture.bytes("photo.png")
    let end = Container.pngChunk("IEND", [UInt8](repeating: 7, count: byteCount))
    let copy = try Self.rewrite(Array(bytes.dropLast(12)) + end)
    #expect(try Pixels.decode(copy) == Pixels.decode(bytes))
    #expect(Array(copy.suffix(end.count)) == end)
  }

  @Test("refuse a file that is truncated anywhere", arguments: copied)
  func truncations(name: String) throws {
    let copy = try Self.rewrite(Fixture.bytes(name))
    // The padding byte of a WebP chunk may be missing.
    let end = copy.count - (name.hasSuffix("webp") ? 1 : 0)
    for count in stride(from: 0, to: end, by: max(1, end / 300)) {
      for windowByteCount in [97, .max] {
        let error = #expect(throws: (any Error).self, "\(count) of \(end)") {
          try Self.rewrite(Array(copy.prefix(count)), windowByteCount: windowByteCount)
        }
        // The format of very few bytes is unknown, and so is the content of an incomplete first WebP chunk.
        let isKnown = ImageFormat.sniff(Array(copy.prefix(count)).span.bytes) != nil
        let mayRefuse = !isKnown || name.hasSuffix("webp") && count < 128
        let isTruncated = (error as? CodecError)?.code == .truncated
        #expect(isTruncated || mayRefuse && error is Refused, "\(count) of \(end)")
      }
    }
  }

  @Test("damage causes an error, or the same image as a decoder's", arguments: copied)
  func damage(name: String) throws {
    let bytes = Fixture.bytes(name)
    let noise = noiseSamples(bytes.count)
    var (passedCount, differentCount) = (0, 0)
    for place in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 400)) {
      var damaged = bytes
      damaged[place] ^= 1 << (noise[place] & 7)
      guard let result = try? Self.rewrite(damaged, windowByteCount: 500) else { continue }
      passedCount += 1
      let (ours, theirs) = (try? Pixels.decode(result).planes, try? Pixels.decode(damaged).planes)
      let isSame = ours == theirs
      // libwebp reads past the end of a damaged image; a result has less data there.
      if name.hasSuffix("webp") {
        differentCount += isSame || ours == nil || theirs == nil ? 0 : 1
      } else {
        #expect(isSame, "\(place)")
      }
    }
    // Checksums cover all of a PNG except the parts that are dropped.
    if !name.hasSuffix("png") { #expect(passedCount > 0) }
    #expect(5 * differentCount <= passedCount, "\(differentCount) of \(passedCount)")
  }

  private static func code(_ body: () throws -> [UInt8]) -> CodecError.Code? {
    let error = #expect(throws: CodecError.self) { try body() }
    return error?.code
  }

  @Test("a JPEG's scans, restart markers and bytes are counted")
  func scans() throws {
    var few = Self.limits
    few.maxScans = 3
    #expect(Self.code { try Self.rewrite(Fixture.bytes("photo-progressive.jpg"), limits: few) } == .limitExceeded)
    let bytes = Fixture.bytes("photo-restart.jpg")
    let restarts = bytes.indices.dropLast().filter { bytes[$0] == 0xFF && (0xD0...0xD7).contains(bytes[$0 + 1]) }
    #expect(restarts.count > 2)
    let missing = Array(bytes[..<restarts[1]] + bytes[(restarts[1] + 2)...])
    #expect(Self.code { try Self.rewrite(missing) } == .corrupt)
    let short = Array(bytes[..<(restarts[0] + 2)] + bytes[restarts[1]...])
    #expect(Self.code { try Self.rewrite(short) } == .corrupt)
    let cut = Array(bytes[..<restarts[2]]) + [0xFF, 0xD9]
    #expect(Self.code { try Self.rewrite(cut) } == .corrupt)
  }

  @Test(
    "write a supplied EXIF block", arguments: ["photo-420.jpg", "photo.png", "photo.webp", "alpha.webp"])
  func exif(name: String) throws {
    let artist = [0x3B, 1, 2, 0, 4, 0, 0, 0] + Array("Ann\0".utf8)
    let block = Array("II*\0".utf8) + [8, 0, 0, 0, 1, 0] + artist + [0, 0, 0, 0]
    let result = try Self.rewrite(Fixture.bytes(name), exif: block)
    #expect(try Self.header(result).copyright == block)
    #expect(try Pixels.decode(result).planes == Pixels.decode(Fixture.bytes(name)).planes)
    #expect(try Self.rewrite(result) == Self.rewrite(Fixture.bytes(name)))
    guard name.hasSuffix("jpg") else { return }
    #expect(try Self.header(Self.rewrite(Fixture.bytes(name), orientation: .right, exif: block)).copyright == block)
  }

  @Test("rotate a JPEG losslessly", arguments: turnable, Orientation.allCases.filter { $0 != .up })
  func rotations(name: String, orientation: Orientation) throws {
    let bytes = Fixture.bytes(name)
    let (source, rotated) = (try Pixels.decode(bytes), try Self.rewrite(bytes, orientation: orientation))
    let result = try Pixels.decode(rotated)
    for windowByteCount in [1, 4096] {
      #expect(try Self.rewrite(bytes, windowByteCount: windowByteCount, orientation: orientation) == rotated)
    }
    // The inverse transform rounds differently for the rotated image.
    let tolerance = 1
    for plane in source.planes.indices {
      let (width, height) = (result.layout[plane].width, result.layout[plane].height)
      var worst = 0
      for y in 0..<height {
        for x in 0..<width {
          let (column, row) = orientation.swapsAxes ? (y, x) : (x, y)
          let (storedWidth, storedHeight) = orientation.swapsAxes ? (height, width) : (width, height)
          let stored = source.sample(
            x: orientation.reversesColumns ? storedWidth - 1 - column : column,
            y: orientation.reversesRows ? storedHeight - 1 - row : row, plane: plane)
          worst = max(worst, abs(stored - result.sample(x: x, y: y, plane: plane)))
        }
      }
      #expect(worst <= tolerance, "plane \(plane)")
    }
    // Rotated back, the image is identical to the last bit.
    let back: Orientation = orientation == .right ? .left : orientation == .left ? .right : orientation
    #expect(try Pixels.decode(Self.rewrite(rotated, orientation: back)).planes == source.planes)
  }

  @Test("rotate only whole blocks")
  func wholeBlocks() throws {
    for orientation in Orientation.allCases where orientation != .up && orientation != .transposed {
      #expect(throws: Refused.self) { try Self.rewrite(Fixture.bytes("photo-odd.jpg"), orientation: orientation) }
    }
    let rotated = try Self.rewrite(Fixture.bytes("photo-odd.jpg"), orientation: .transposed)
    #expect(try Self.header(rotated).width == 81 && Self.header(rotated).height == 121)
  }

  @Test("a rotated damaged JPEG shows the same image, and nothing leaks", arguments: turnable)
  func damagedTurns(name: String) throws {
    let (bytes, noise) = (Fixture.bytes(name), noiseSamples(100_000))
    var turnedCount = 0
    for place in stride(from: 2, to: bytes.count, by: max(1, bytes.count / 200)) {
      var damaged = bytes
      damaged[place] ^= 1 << (noise[place] & 7)
      guard let result = try? Self.rewrite(damaged, orientation: .down) else { continue }
      guard let theirs = try? Pixels.decode(damaged), theirs.warnings.isEmpty else { continue }
      // Rotated back, it equals a decoder's result for the damaged file.
      let back = try Pixels.decode(Self.rewrite(result, orientation: .down))
      let isSame = back.planes == theirs.planes
      #expect(isSame, "\(place)")
      turnedCount += 1
    }
    // With restart markers or several scans, all damage is detected.
    #expect(turnedCount > 0 || name.contains("progressive") || name.contains("restart"))
  }
}
