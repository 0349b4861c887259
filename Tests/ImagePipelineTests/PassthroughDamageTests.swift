import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Passthrough of damaged files")
struct PassthroughDamageTests {
  /// A way in which storage and transport damage files.
  enum Damage: CaseIterable, Sendable {
    case truncated, flippedBits, zeroedRange, removedRange, swappedBlocks

    /// Returns the damaged file; the first 20th stays as it is.
    func apply(to bytes: [UInt8], using generator: inout SeededGenerator) -> [UInt8] {
      var result = bytes
      let first = bytes.count / 20
      switch self {
      case .truncated:
        result.removeLast(Int.random(in: 1..<bytes.count / 2, using: &generator))
      case .flippedBits:
        for _ in 0..<Int.random(in: 1...20, using: &generator) {
          result[Int.random(in: first..<bytes.count, using: &generator)] ^=
            1 << UInt8.random(in: 0..<8, using: &generator)
        }
      case .zeroedRange:
        let at = Int.random(in: first..<bytes.count - 64, using: &generator)
        for index in at..<at + Int.random(in: 1...64, using: &generator) { result[index] = 0 }
      case .removedRange:
        let at = Int.random(in: first..<bytes.count - 64, using: &generator)
        result.removeSubrange(at..<at + Int.random(in: 1...64, using: &generator))
      case .swappedBlocks:
        let at = Int.random(in: first..<bytes.count / 2 - 32, using: &generator)
        let other = Int.random(in: bytes.count / 2..<bytes.count - 32, using: &generator)
        for index in 0..<32 { result.swapAt(at + index, other + index) }
      }
      return result
    }
  }

  /// A file that is passed through.
  enum Source: CaseIterable, Equatable, Sendable {
    case small(String), jpeg, progressiveJPEG, png, webp, losslessWebP

    static let allCases: [Source] =
      ["photo-restart.jpg", "photo-gray.jpg", "palette.png", "alpha.png", "alpha.webp", "lossless.webp"].map {
        .small($0)
      }
      + [.jpeg, .progressiveJPEG, .png, .webp, .losslessWebP]

    func bytes() throws -> [UInt8] {
      var configuration = ProcessingConfiguration(maxWidth: 480, compressionQuality: 0.8, allowUpscale: true)
      switch self {
      case .small(let name): return Fixture.bytes(name)
      case .jpeg: configuration.preferredFormat = .jpeg
      case .progressiveJPEG:
        configuration.preferredFormat = .jpeg
        configuration.jpeg = JPEGOptions(isProgressive: true)
      case .png: configuration.preferredFormat = .png
      case .webp: configuration.preferredFormat = .webp
      case .losslessWebP:
        configuration.preferredFormat = .webp
        configuration.webp = WebPOptions(isLossless: true)
      }
      return try process(Fixture.bytes("photo.png"), configuration).bytes
    }
  }

  private static func isEncodable(_ bytes: [UInt8]) -> Bool {
    (try? process(bytes, ProcessingConfiguration(compressionQuality: 0.5, alwaysEncode: true))) != nil
  }

  @Test("what is passed through can be decoded, and encoding accepts it", arguments: Source.allCases)
  func damaged(source: Source) throws {
    let bytes = try source.bytes()
    var generator = SeededGenerator(seed: 26)
    var (passedCount, refusedCount) = (0, 0)
    for damage in Damage.allCases {
      for _ in 0..<8 {
        let file = damage.apply(to: bytes, using: &generator)
        guard let result = try? process(file, ProcessingConfiguration(), windowByteCount: 4096) else {
          refusedCount += 1
          continue
        }
        passedCount += result.report.isPassedThrough ? 1 : 0
        #expect((try? Pixels.decode(result.bytes)) != nil, "\(damage)")
        #expect(Self.isEncodable(file), "\(damage)")
      }
    }
    #expect(refusedCount > 0)
    // Nearly any damage breaks the checksums of a PNG and the codes of a lossless WebP.
    switch source {
    case .small("photo-restart.jpg"), .small("alpha.webp"), .jpeg, .webp: #expect(passedCount > 0)
    default: break
    }
  }

  @Test("a file without its last bytes is passed through if it can be encoded", arguments: Source.allCases)
  func lastBytes(source: Source) throws {
    let bytes = try source.bytes()
    let whole = try process(bytes, ProcessingConfiguration())
    #expect(whole.report.isPassedThrough && whole.report.warnings.isEmpty)
    var passedCount = 0
    for missing in 1...24 {
      let file = Array(bytes.dropLast(missing))
      let result = try? process(file, ProcessingConfiguration(), windowByteCount: 1000)
      #expect((result != nil) == Self.isEncodable(file), "\(missing)")
      guard let result else { continue }
      passedCount += 1
      #expect(result.report.isPassedThrough)
      // The last byte of these only pads the image to an even size.
      let isPadding = missing == 1 && (source == .small("lossless.webp") || source == .losslessWebP)
      let warnings = isPadding ? [] : ["the end of the file was missing; the result has one"]
      #expect(result.report.messages == warnings, "\(missing)")
      #expect(try Pixels.decode(result.bytes).planes == Pixels.decode(whole.bytes).planes, "\(missing)")
    }
    #expect(passedCount > 0)
  }

  @Test("a PNG whose pixels have another checksum is passed through with a warning")
  func checksum() throws {
    let rows: [UInt8] = [0, 10, 20, 30, 40, 0, 50, 60, 70, 80]
    let whole = Container.png(width: 4, height: 2, bitDepth: 8, colorType: 0, rows: rows)
    var data = Container.stored(rows)
    data[data.count - 1] ^= 1
    let damaged = Array(whole.prefix(33)) + Container.pngChunk("IDAT", data) + Container.pngChunk("IEND", [])
    let warning = "the file is damaged; the decoder repaired or skipped the damaged parts"
    for (file, warnings) in [(whole, []), (damaged, [warning])] {
      let result = try process(file, ProcessingConfiguration())
      #expect(result.report.isPassedThrough && result.report.messages == warnings)
    }
  }

  @Test("an animated WebP without its ANIM chunk is encoded")
  func animationWithoutHeader() throws {
    var file = Fixture.bytes("animated.webp")
    let place = try #require(file.indices.first { file[$0...].starts(with: Array("ANIM".utf8)) })
    file.replaceSubrange(place..<place + 4, with: Array("XNIM".utf8))
    let result = try process(file, ProcessingConfiguration(maxFrames: 0))
    #expect(!result.report.isPassedThrough && result.report.output.frameCount > 1)
  }

  @Test(
    "a JPEG without its last bytes is rotated without loss if it can be encoded",
    arguments: ["photo-420.jpg", "photo-progressive.jpg"])
  func lastBytesOfRotated(name: String) throws {
    let bytes = Fixture.bytes(name)
    let configuration = ProcessingConfiguration(rotation: 90)
    let whole = try process(bytes, configuration)
    for missing in 1...40 {
      let file = Array(bytes.dropLast(missing))
      guard Self.isEncodable(file) else {
        let error = #expect(throws: PipelineError.self, "\(missing)") { try process(file, configuration) }
        #expect(error?.code == .truncatedImage, "\(missing)")
        continue
      }
      let result = try process(file, configuration, windowByteCount: 1000)
      #expect(result.bytes == whole.bytes && result.report.isPassedThrough, "\(missing)")
      #expect(result.report.messages == ["the end of the file was missing; the result has one"])
    }
    #expect(Self.isEncodable(Array(bytes.dropLast(2))) && !Self.isEncodable(Array(bytes.dropLast(40))))
  }

  @Test("an image whose decoder exceeds the memory limit is passed through with a warning")
  func tooLargeToCheck() throws {
    let bytes = try Source.losslessWebP.bytes()
    let limits = ImageLimits(memory: 400_000)
    let result = try process(bytes, ProcessingConfiguration(), limits: limits)
    #expect(result.report.isPassedThrough && result.report.peakMemoryByteCount <= 400_000)
    #expect(
      result.report.messages
        == ["the image was not checked for damage, as decoding it needs more than image_memory_limit"])
    #expect(result.bytes == (try process(bytes, ProcessingConfiguration()).bytes))
  }
}
