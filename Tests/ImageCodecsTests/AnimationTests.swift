import ImageCodecs
import TestSupport
import Testing

@Suite("Animations")
struct AnimationTests {
  @Test(
    "a GIF's frames are composed as viewers show them, in windows of each size", arguments: 0..<60 as Range<UInt64>)
  func compositionOfGIF(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let animation = GIFAnimation.random(&generator, frameCount: Int.random(in: 1...6, using: &generator))
    let expected = animation.composed
    for windowByteCount in [1, 7, 4096, Int.max] {
      let pixels = try Pixels.decode(animation.bytes, windowByteCount: windowByteCount, frames: (0, 0))
      try #require(pixels.frames.count == expected.count)
      #expect(pixels.frameBytes == expected)
      #expect(pixels.frames.map(\.duration) == animation.frames.map(\.delay))
      #expect(pixels.frames.allSatisfy { $0.durationDivisor == 100 && $0.playCount == 4 })
      #expect(pixels.warnings == [])
    }
    let (first, count) = (Int.random(in: 0..<expected.count, using: &generator), 2)
    let some = try Pixels.decode(animation.bytes, frames: (first, count))
    #expect(some.frameBytes == Array(expected[first...].prefix(count)))
    #expect(some.warnings == (first > 0 || first + count < expected.count ? [.firstFrameOnly] : []))
  }

  @Test("a frame that a GIF does not have is an error")
  func missingFrame() throws {
    let frame = GIFFrame(width: 2, height: 2, indices: [0, 1, 2, 3])
    let animation = GIFAnimation(width: 2, height: 2, frames: [frame, frame])
    for count in [0, 1] {
      let error = #expect(throws: CodecError.self) { _ = try Pixels.decode(animation.bytes, frames: (2, count)) }
      #expect(error?.code == .noFrame && error?.message == "frame_index is 2, but the image has 2 frames")
    }
  }

  @Test("frames, and the pixels of frames, are limited, whatever a frame's size on the canvas")
  func limits() throws {
    var huge = GIFFrame(width: 65_535, height: 65_535, indices: [])
    huge.disposal = 3
    let small = GIFFrame(width: 1, height: 1, indices: [0])
    var limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0)
    limits.maxFrames = 3
    let many = GIFAnimation(width: 1, height: 1, frames: Array(repeating: small, count: 4))
    let tooMany = #expect(throws: CodecError.self) {
      _ = try Pixels.decode(many.bytes, frames: (0, 0), limits: limits)
    }
    #expect(tooMany?.limit == CodecError.Limit(name: "max_animation_frames", limit: 3, value: 4))
    #expect(try Pixels.decode(many.bytes, frames: (0, 3), limits: limits).frames.count == 3)
    limits.maxFramePixels = 1_000_000
    let tooLarge = #expect(throws: CodecError.self) {
      let animation = GIFAnimation(width: 1, height: 1, frames: [small, huge])
      _ = try Pixels.decode(animation.bytes, frames: (0, 0), limits: limits)
    }
    let pixels = 65_535 * 65_535 + 1 as UInt64
    #expect(tooLarge?.limit == CodecError.Limit(name: "max_animation_pixels", limit: 1_000_000, value: pixels))
  }

  @Test("a GIF cut at any byte is an error or ends between frames, and is tolerated with all frames before the cut")
  func truncation() throws {
    var generator = SeededGenerator(seed: 5)
    let animation = GIFAnimation.random(&generator, frameCount: 3)
    let (bytes, expected) = (animation.bytes, animation.composed)
    for count in stride(from: 40, to: bytes.count, by: 11) {
      let cut = Array(bytes.prefix(count))
      if let pixels = try? Pixels.decode(cut, frames: (0, 0)) {
        #expect(pixels.frameBytes == Array(expected.prefix(pixels.frames.count)))
      }
      if let pixels = try? Pixels.decode(cut, frames: (0, 0), toleratesTruncation: true), pixels.frames.count > 1 {
        #expect(pixels.frameBytes.dropLast() == expected.prefix(pixels.frames.count - 1))
      }
    }
  }

  @Test("an APNG has the frames, durations and plays that it was written with", arguments: 0..<20 as Range<UInt64>)
  func apng(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let animation = GIFAnimation.random(&generator, frameCount: Int.random(in: 2...5, using: &generator))
    let frames = animation.composed
    let durations = frames.map { _ in [0, 1, 9, 65_535].randomElement(using: &generator)! }
    let (bytes, frameCount) = try encodedAnimation(
      frames, durations: durations, width: animation.width, height: animation.height, as: .png)
    for windowByteCount in [1, 7, Int.max] {
      let pixels = try Pixels.decode(bytes, windowByteCount: windowByteCount, frames: (0, 0))
      #expect(pixels.frames.count == frameCount)
      // Equal frames may have become one, and long durations several.
      #expect(pixels.frameBytes.allSatisfy { frames.contains($0) })
      let total = pixels.frames.reduce(0) { $0 + $1.nanoseconds / 1_000_000 }
      #expect(frameCount == 1 || total == UInt64(durations.reduce(0, +)) * 10)
      if Set(frames).count == frames.count { #expect(pixels.frameBytes == frames) }
      #expect(frameCount == 1 || pixels.frames.allSatisfy { $0.playCount == 7 })
    }
  }

  private static let animated: [ImageFormat] = [.png, .webp, .gif]

  @Test("equal frames become one that lasts longer, unless one lasts at most 10 ms", arguments: animated)
  func equalFrames(format: ImageFormat) throws {
    let (one, other) = ([UInt8](repeating: 255, count: 16), (0..<4).flatMap { _ in [0, 9, 99, 255] as [UInt8] })
    let (bytes, frameCount) = try encodedAnimation(
      [one, one, other, other, other], durations: [5, 6, 1, 1, 7], width: 2, height: 2, as: format)
    #expect(frameCount == 4)
    let pixels = try Pixels.decode(bytes, frames: (0, 0))
    #expect(pixels.frames.map { $0.nanoseconds / 10_000_000 } == [11, 1, 1, 7])
    #expect(pixels.frameBytes == [one, other, other, other])
  }

  @Test("an animation whose frames are all equal keeps its duration; one frame is a still image", arguments: animated)
  func allEqualFrames(format: ImageFormat) throws {
    let one = [UInt8](repeating: 255, count: 16)
    let (bytes, count) = try encodedAnimation([one, one, one], durations: [5, 6, 7], width: 2, height: 2, as: format)
    let pixels = try Pixels.decode(bytes, frames: (0, 0))
    #expect(count == 1 && pixels.frameBytes == [one])
    #expect(pixels.frames.map { $0.nanoseconds / 10_000_000 } == [18] && pixels.frames[0].playCount == 7)
    let (still, _) = try encodedAnimation([one], durations: [5], width: 2, height: 2, as: format)
    let frames = try Pixels.decode(still, frames: (0, 0)).frames
    #expect(frames.allSatisfy { $0.nanoseconds == 0 })
  }

  @Test("a GIF frame of any duration is stored once, and if it is cleared twice", arguments: [false, true])
  func longFrame(isCleared: Bool) throws {
    var generator = SeededGenerator(seed: 6)
    let count = 32 * 24
    let noise = (0..<count * 4).map { $0 % 4 == 3 ? 255 : UInt8.random(in: 0...255, using: &generator) }
    let next = noise.enumerated().map { $0 % 4 == 3 ? (isCleared ? 0 : 255) : ~$1 }
    let (long, frameCount) = try encodedAnimation(
      Array(repeating: noise, count: 5) + [next], durations: Array(repeating: 65_535, count: 5) + [7], width: 32,
      height: 24, as: .gif)
    let (short, _) = try encodedAnimation([noise, next], durations: [65_535, 7], width: 32, height: 24, as: .gif)
    #expect(long.count < (isCleared ? 2 : 1) * short.count + 100)
    let (animation, plain) = (try Pixels.decode(long, frames: (0, 0)), try Pixels.decode(short, frames: (0, 0)))
    #expect(
      frameCount == 6
        && animation.frames.map { $0.nanoseconds / 10_000_000 } == Array(repeating: 65_535, count: 5) + [7])
    #expect(animation.frameBytes == Array(repeating: plain.frameBytes[0], count: 5) + [plain.frameBytes[1]])
  }

  /// The flags of each frame of a WebP.
  private func flags(_ webp: [UInt8]) -> [UInt8] {
    webp.indices.dropLast(23).filter { Array(webp[$0..<$0 + 4]) == [UInt8]("ANMF".utf8) }.map { webp[$0 + 23] }
  }

  @Test("pixels of a lossless WebP that did not change are left out, and frames stay exact", arguments: [255, 128])
  func keptPixels(alpha: UInt8) throws {
    var generator = SeededGenerator(seed: 4)
    let noise = (0..<60 * 40).flatMap { _ in (0..<3).map { _ in UInt8.random(in: 0...255, using: &generator) } + [alpha]
    }
    let frames = (0..<4).map { index in
      var frame = noise
      // Two corners, so that most of the rectangle did not change.
      frame.replaceSubrange(0..<4, with: [UInt8(index), 2, 3, alpha])
      frame.replaceSubrange(frame.count - 4..<frame.count, with: [1, UInt8(index), 3, alpha])
      return frame
    }
    let (bytes, count) = try encodedAnimation(frames, durations: [5, 5, 5, 5], width: 60, height: 40, as: .webp)
    #expect(try count == 4 && Pixels.decode(bytes, frames: (0, 0)).frameBytes == frames)
    // Blending would show what is below a new pixel that is not opaque.
    #expect(flags(bytes) == (alpha == 255 ? [2, 0, 0, 0] : [2, 2, 2, 2]))
    #expect(bytes.count < (alpha == 255 ? 2 : 5) * noise.count)
  }

  @Test("every hundredth frame is a key frame, which has the whole canvas", arguments: [ImageFormat.webp, .png])
  func keyFrames(format: ImageFormat) throws {
    var generator = SeededGenerator(seed: 8)
    var frame = (0..<30 * 20 * 4).map { $0 % 4 == 3 ? 255 : UInt8.random(in: 0...255, using: &generator) }
    let frames = (0..<250).map { index in
      frame[index * 4] &+= 1
      return frame
    }
    let (bytes, count) = try encodedAnimation(
      frames, durations: frames.map { _ in 5 }, width: 30, height: 20, as: format)
    let pixels = try Pixels.decode(bytes, frames: (0, 0))
    #expect(count == 250 && pixels.frameBytes == frames)
    let wholes = pixels.frames.indices.filter { pixels.frames[$0].width == 30 && pixels.frames[$0].height == 20 }
    #expect(wholes == [0, 100, 200])
    if format == .webp {
      let flags = flags(bytes)
      #expect(wholes.allSatisfy { flags[$0] == 2 }, "they are not blended")
    }
  }

  @Test("what a lossy WebP leaves out does not add up", arguments: [90, 50])
  func keptBlocks(quality: Int) throws {
    let (width, height) = (64, 48)
    // A square moves over a pattern that slowly becomes brighter.
    let frames = (0..<50).map { index in
      (0..<width * height).flatMap { place -> [UInt8] in
        let (x, y) = (place % width, place / width)
        let level = UInt8(40 + index * 2 + (x / 8 + y / 8) % 3 * 8)
        return (index..<index + 8).contains(x) && (8..<16).contains(y)
          ? [240, 40, 40, 255] : [level, level, level, 255]
      }
    }
    let durations = frames.map { _ in 4 }
    let (bytes, _) = try encodedAnimation(
      frames, durations: durations, width: width, height: height, as: .webp, quality: quality)
    let pixels = try Pixels.decode(bytes, frames: (0, 0))
    let found = pixels.frameBytes
    try #require(found.count == frames.count)
    for (ours, theirs) in zip(found, frames) {
      let sum = zip(ours, theirs).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
      // The tolerance is 3 and 10, and the encoder adds its own errors.
      #expect(Double(sum) / Double(ours.count) < 8)
    }
    let isPart = pixels.frames.contains { $0.width * $0.height < width * height }
    #expect(quality == 90 || isPart, "what hardly changes is left out")
  }

  @Test("an encoder without frames in its options refuses a second one")
  func secondFrame() throws {
    let options = EncoderOptions(format: .png, width: 1, height: 1, pixelFormat: .gray8)
    var encoder = try Encoder(options: options, budget: ImageBudget(limit: 1 << 24))
    let rows = try rowBuffer([1], rowByteCount: 1)
    try encoder.write(Strip(format: .gray8, rows: rows.rows(count: 1)))
    try encoder.finish(.frame)
    let animation = GIFAnimation(width: 1, height: 1, frames: [GIFFrame(width: 1, height: 1, indices: [0])])
    let frame = try Pixels.decode(animation.bytes).frames[0]
    do {
      try encoder.beginFrame(frame)
      Issue.record("a second frame began")
    } catch { #expect(error.code == .unsupported) }
  }
}
