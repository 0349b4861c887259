import ImageCodecs
import TestSupport
import Testing

@Suite("Animated WebP")
struct WebPAnimationTests {
  /// An animation of noise, and its frames.
  private struct Sample {
    var bytes: [UInt8]
    var frames: [[UInt8]]
    let (width, height): (Int, Int)

    init(seed: UInt64, frameCount: Int, width: Int = 20, height: Int = 14) throws {
      var generator = SeededGenerator(seed: seed)
      (self.width, self.height) = (width, height)
      frames = (0..<frameCount).map { _ in
        (0..<width * height).flatMap { _ -> [UInt8] in
          (0..<3).map { _ in UInt8.random(in: 0...255, using: &generator) }
            + [Bool.random(using: &generator) ? 255 : .random(in: 1...254, using: &generator)]
        }
      }
      bytes = try encodedAnimation(
        frames, durations: frames.map { _ in 4 }, width: width, height: height, as: .webp
      ).bytes
    }
  }

  /// The offsets and types of the chunks of a file.
  private func chunks(_ file: [UInt8]) -> [(at: Int, type: String, byteCount: Int)] {
    var (found, at) = ([(at: Int, type: String, byteCount: Int)](), 12)
    while at + 8 <= file.count {
      let size = number(file, at + 4)
      found.append((at, String(decoding: file[at..<at + 4], as: UTF8.self), size))
      at += 8 + size + size % 2
    }
    return found
  }

  private func number(_ file: [UInt8], _ at: Int) -> Int {
    (0..<4).reduce(0) { $0 | Int(file[at + $1]) << (8 * $1) }
  }

  private func put(_ value: Int, in file: inout [UInt8], at: Int) {
    for index in 0..<4 { file[at + index] = UInt8(truncatingIfNeeded: value >> (8 * index)) }
  }

  /// Returns a file with bytes inserted, and the size in its header corrected.
  private func inserting(_ bytes: [UInt8], in file: [UInt8], at: Int) -> [UInt8] {
    var file = file
    file.insert(contentsOf: bytes, at: at)
    put(file.count - 8, in: &file, at: 4)
    return file
  }

  @Test("frames are the same in windows of each size, whichever are selected", arguments: 1...6 as ClosedRange<UInt64>)
  func selections(seed: UInt64) throws {
    let sample = try Sample(seed: seed, frameCount: 5)
    for (first, count) in [(0, 0), (0, 1), (0, 2), (0, 5), (0, 9), (2, 0), (3, 1), (4, 1)] {
      let expected = Array(sample.frames[first...].prefix(count == 0 ? 5 : count))
      for windowByteCount in [1, 7, 600, Int.max] {
        let pixels = try Pixels.decode(sample.bytes, windowByteCount: windowByteCount, frames: (first, count))
        #expect(pixels.frameBytes == expected)
        #expect(pixels.frames.allSatisfy { $0.playCount == 7 && $0.duration == 40 })
        #expect(pixels.warnings == (expected.count < 5 ? [.firstFrameOnly] : []))
      }
    }
    for windowByteCount in [7, Int.max] {
      let error = #expect(throws: CodecError.self) {
        _ = try Pixels.decode(sample.bytes, windowByteCount: windowByteCount, frames: (5, 1))
      }
      #expect(error?.code == .noFrame && error?.message == "frame_index is 5, but the image has 5 frames")
    }
  }

  @Test("memory does not grow with the number of frames, and the estimate holds")
  func memory() throws {
    let peaks = try [4, 40].map { count in
      let sample = try Sample(seed: 3, frameCount: count, width: 64, height: 64)
      let budget = ImageBudget(limit: 1 << 30)
      var decoder = try Decoder(
        format: .webp, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0), budget: budget)
      var at = 0
      func window(_ bytes: [UInt8]) -> [UInt8] { Array(bytes[min(at, bytes.count)...].prefix(1000)) }
      while true {
        let part = window(sample.bytes)
        let progress = try decoder.readHeader(part.span.bytes, isLast: false)
        at += progress.consumedByteCount
        if progress.value { break }
      }
      #expect(decoder.header.canBufferInput && decoder.header.hasFrames && decoder.header.frameCount == 0)
      try decoder.selectFrames(first: 0, count: 0)
      let estimate = try decoder.estimatedByteCount(scale: 8)
      _ = try decoder.start(scale: 8)
      while true {
        let part = window(sample.bytes)
        let progress = try decoder.read(part.span.bytes, isLast: at + part.count >= sample.bytes.count)
        at += progress.consumedByteCount
        if progress.value == .done { break }
      }
      #expect(decoder.header.frameCount == count && budget.peak <= Int(estimate))
      return budget.peak
    }
    #expect(peaks[1] <= peaks[0] + 20_000)
  }

  @Test("a file that is buffered on request has the frames of one that is not, and can count from the end")
  func buffered() throws {
    let sample = try Sample(seed: 4, frameCount: 4)
    var decoder = try Decoder(
      format: .webp, limits: CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0),
      budget: ImageBudget(limit: 1 << 30))
    var at = 0
    func readHeader() throws {
      while true {
        let part = Array(sample.bytes[at...].prefix(100))
        let progress = try decoder.readHeader(part.span.bytes, isLast: false)
        at += progress.consumedByteCount
        if progress.value { return }
      }
    }
    try readHeader()
    try decoder.bufferInput()
    try readHeader()
    #expect(at == sample.bytes.count && decoder.header.frameCount == 4 && !decoder.header.canBufferInput)
    try decoder.selectFrames(first: -2, count: 1)
    _ = try decoder.start(scale: 8)
    let none: [UInt8] = []
    #expect(try decoder.read(none.span.bytes, isLast: true).value == .stripReady)
    var pixels: [UInt8] = []
    decoder.withStrip { strip in
      for row in 0..<strip.plane(0).rowCount {
        strip.plane(0).withRow(row) { span in
          span.extracting(first: sample.width * 4).withUnsafeBytes { pixels.append(contentsOf: $0) }
        }
      }
    }
    #expect(pixels == sample.frames[2])
  }

  @Test("a WebP cut at any byte is an error or ends between frames, and is tolerated with all frames before the cut")
  func truncation() throws {
    let sample = try Sample(seed: 5, frameCount: 3, width: 6, height: 5)
    for windowByteCount in [9, Int.max] {
      for count in stride(from: 20, to: sample.bytes.count, by: 3) {
        let cut = Array(sample.bytes.prefix(count))
        #expect(throws: CodecError.self) {
          _ = try Pixels.decode(cut, windowByteCount: windowByteCount, frames: (0, 0))
        }
        if let pixels = try? Pixels.decode(
          cut, windowByteCount: windowByteCount, frames: (0, 0), toleratesTruncation: true)
        {
          #expect(pixels.frameBytes == Array(sample.frames.prefix(pixels.frames.count)) && pixels.frames.count < 3)
          #expect(pixels.warnings.contains(.truncated))
        }
      }
    }
    let behindSecond = chunks(sample.bytes).filter { $0.type == "ANMF" }[2].at
    let pixels = try Pixels.decode(
      Array(sample.bytes.prefix(behindSecond + 30)), windowByteCount: 9, frames: (0, 0), toleratesTruncation: true)
    #expect(pixels.frames.count == 2)
  }

  @Test("chunks that are no frames are skipped, wherever they are")
  func otherChunks() throws {
    let sample = try Sample(seed: 6, frameCount: 4)
    let junk = [UInt8]("JUNK".utf8) + [5, 0, 0, 0] + [1, 2, 3, 4, 5, 0]
    var file = sample.bytes
    for chunk in chunks(sample.bytes).reversed() {
      if chunk.type == "ANMF" {  // behind the image of the frame, too
        file = inserting(junk, in: file, at: chunk.at + 8 + chunk.byteCount)
        put(chunk.byteCount + junk.count, in: &file, at: chunk.at + 4)
      }
      file = inserting(junk, in: file, at: chunk.at)
    }
    // The extended header is the first chunk.
    file.removeSubrange(12..<12 + junk.count)
    put(file.count - 8, in: &file, at: 4)
    for windowByteCount in [1, 13, Int.max] {
      #expect(
        try Pixels.decode(file, windowByteCount: windowByteCount, frames: (0, 0)).frameBytes == sample.frames)
    }
  }

  @Test("a last frame that extends beyond the file's size is none")
  func frameBeyondTheEnd() throws {
    let sample = try Sample(seed: 7, frameCount: 3)
    var file = sample.bytes
    put(file.count - 10, in: &file, at: 4)
    for windowByteCount in [1, 700, Int.max] {
      let pixels = try Pixels.decode(file, windowByteCount: windowByteCount, frames: (0, 0))
      #expect(pixels.frameBytes == Array(sample.frames.prefix(2)) && pixels.warnings == [])
    }
  }

  @Test("a frame with more bytes than its pixels can need is refused before it is buffered")
  func overlongFrame() throws {
    let sample = try Sample(seed: 8, frameCount: 2)
    let frame = chunks(sample.bytes).filter { $0.type == "ANMF" }[1]
    let junk = [UInt8]("ALPH".utf8) + [0, 0, 8, 0] + [UInt8](repeating: 0, count: 8 << 16)
    var file = inserting(junk, in: sample.bytes, at: frame.at + 8 + 16)
    put(frame.byteCount + junk.count, in: &file, at: frame.at + 4)
    let budget = ImageBudget(limit: 1 << 30)
    let error = #expect(throws: CodecError.self) {
      _ = try Pixels.decode(file, windowByteCount: 50, frames: (0, 0), budget: budget)
    }
    #expect(error?.code == .corrupt && budget.peak < 1 << 20)
  }

  @Test("frames behind unusual chunks, or with metadata to keep, are buffered as a whole", arguments: [false, true])
  func unusualOrder(keepsMetadata: Bool) throws {
    let sample = try Sample(seed: 9, frameCount: 3)
    var file = sample.bytes
    let parameters = try #require(chunks(file).first { $0.type == "ANIM" })
    if !keepsMetadata {  // a play count behind the frames
      let chunk = file[parameters.at..<parameters.at + 14]
      file.removeSubrange(parameters.at..<parameters.at + 14)
      file += chunk
    }
    var limits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0)
    limits.keepsMetadata = keepsMetadata
    let pixels = try Pixels.decode(file, windowByteCount: 30, frames: (0, 0), limits: limits)
    #expect(pixels.frameBytes == sample.frames && pixels.frames.allSatisfy { $0.playCount == 7 })
  }
}
