import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Passthrough of animations")
struct AnimationPassthroughTests {
  private static let all = ProcessingConfiguration(maxFrames: 0)

  /// A GIF with a comment and another application's extension behind its colors.
  private static func animation(seed: UInt64) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    var bytes = GIFAnimation.random(&generator, frameCount: 4).bytes
    let comment: [UInt8] = [0x21, 0xFE, 3, 0x61, 0x62, 0x63, 0]
    let application = [0x21, 0xFF, 11] + [UInt8]("XMP DataXMP".utf8) + [1, 5, 0]
    bytes.insert(contentsOf: comment + application + [0x21, 0xFF, 2, 1, 2, 1, 9, 0], at: 37)
    return bytes
  }

  /// The animation in each format.
  private static func files(seed: UInt64) throws -> [[UInt8]] {
    let gif = animation(seed: seed)
    let webp = WebPOptions(isLossless: true)
    return [
      gif,
      try process(gif, ProcessingConfiguration(preferredFormat: .png, maxFrames: 0)).bytes,
      try process(gif, ProcessingConfiguration(preferredFormat: .webp, maxFrames: 0, webp: webp)).bytes,
    ]
  }

  @Test("an animation that needs no change is copied", arguments: [1, 2, 3, 4] as [UInt64], [Int.max, 4096, 7, 1])
  func copies(seed: UInt64, windowByteCount: Int) throws {
    for file in try Self.files(seed: seed) {
      let before = try Pixels.decode(file, frames: (0, 0))
      guard before.frames.count > 1 else { continue }
      let (bytes, report) = try process(file, Self.all, windowByteCount: windowByteCount)
      let after = try Pixels.decode(bytes, frames: (0, 0))
      #expect(report.isPassedThrough && report.messages == [])
      #expect(after.planes == before.planes && after.frames == before.frames && bytes.count <= file.count)
      #expect(report.input.frameCount == before.frames.count && report.output.frameCount == before.frames.count)
      #expect(report.output.playCount == before.frames.last?.playCount && report.output.duration != nil)
      #expect(!bytes.contains([UInt8]("XMP".utf8)) && !bytes.contains([UInt8]("abc".utf8)))
      var encoded = Self.all
      encoded.alwaysEncode = true
      #expect(try !process(file, encoded).report.isPassedThrough)
    }
  }

  @Test("a part of an animation, a changed one, and one frame of it are not copied")
  func decodes() throws {
    for file in try Self.files(seed: 1) {
      for configuration in [
        ProcessingConfiguration(maxFrames: 2), ProcessingConfiguration(frameIndex: FrameIndex(1), maxFrames: 0),
        ProcessingConfiguration(flipHorizontal: true, maxFrames: 0), ProcessingConfiguration(),
      ] { #expect(try !process(file, configuration).report.isPassedThrough) }
    }
  }

  @Test("a lossy WebP is copied up to its quality")
  func quality() throws {
    let gif = Self.animation(seed: 2)
    let file = try process(
      gif, ProcessingConfiguration(compressionQuality: 0.6, preferredFormat: .webp, maxFrames: 0)
    ).bytes
    for (quality, isCopied) in [(0.9, true), (0.6, true), (0.3, false)] {
      let configuration = ProcessingConfiguration(compressionQuality: quality, maxFrames: 0)
      #expect(try process(file, configuration).report.isPassedThrough == isCopied)
    }
  }

  @Test("a truncated GIF is copied if it can be decoded", arguments: [1, 2, 3] as [UInt64])
  func truncated(seed: UInt64) throws {
    let file = Self.animation(seed: seed)
    var encoded = Self.all
    encoded.alwaysEncode = true
    for count in 60..<file.count {
      let part = Array(file[..<count])
      let expected = Result { try process(part, encoded) }
      let found = Result { try process(part, Self.all) }
      switch (found, expected) {
      case (.success(let found), .success):
        #expect(
          try Pixels.decode(found.bytes, frames: (0, 0)).planes == Pixels.decode(part, frames: (0, 0)).planes)
      case (.failure, .failure): break
      case (.success, .failure(let error)): Issue.record("\(count) bytes were copied in spite of \(error)")
      case (.failure(let error), .success): Issue.record("\(count) bytes were not copied: \(error)")
      }
    }
  }
}
