import CPixels
import Foundation
import Testing

/// A comparison of two images by the similarity metric.
struct SimilarityCase: Sendable, CustomTestStringConvertible {
  var width: Int
  var height: Int
  var channels = 3
  var background = 0.0

  var testDescription: String { "\(width)x\(height), \(channels) channels, background \(background)" }

  func options(_ isa: cpixels_isa) -> cpixels_similarity_options {
    cpixels_similarity_options(
      width: UInt32(width), height: UInt32(height), channels: UInt8(channels), background: background, isa: isa)
  }

  /// Smooth waves with some noise.
  var image: [UInt8] {
    var state: UInt32 = 7
    return (0..<width * height * channels).map { index in
      let (x, y, c) = (index / channels % width, index / channels / width, index % channels)
      state = state &* 1_664_525 &+ 1_013_904_223
      let wave = sin(Double(x) / Double(5 + c)) * cos(Double(y) / 9) + sin(Double(x * y) / 400)
      return UInt8(clamping: Int(128 + 50 * wave) + Int(state >> 28))
    }
  }

  /// The image in coarse levels.
  func coarse(_ step: Int) -> [UInt8] {
    image.enumerated().map { index, level in
      channels == 4 && index % 4 == 3 ? level : UInt8(clamping: (Int(level) + step / 2) / step * step)
    }
  }

  /// Pushes `portion` rows at a time and returns the score.
  func score(_ reference: UnsafeRawPointer, _ result: UnsafeRawPointer, _ isa: cpixels_isa, portion: Int = 16) -> Double
  {
    var options = options(isa)
    var byteCount = 0
    #expect(cpixels_similarity_measure(&options, &byteCount))
    let memory = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 64)
    defer { memory.deallocate() }
    memory.initializeMemory(as: UInt8.self, repeating: 0xA5, count: byteCount)
    guard let similarity = cpixels_similarity_init(&options, memory) else { return .nan }
    let stride = width * channels
    for row in Swift.stride(from: 0, to: height, by: portion) {
      cpixels_similarity_push(
        similarity, (reference + row * stride).assumingMemoryBound(to: UInt8.self), stride,
        (result + row * stride).assumingMemoryBound(to: UInt8.self), stride, min(portion, height - row))
    }
    return cpixels_similarity_score(similarity)
  }

  func score(_ result: [UInt8], _ isa: cpixels_isa, portion: Int = 16) -> Double {
    score(image, result, isa, portion: portion)
  }
}

@Suite("Similarity")
struct SimilarityTests {
  static let cases = [
    SimilarityCase(width: 8, height: 8), SimilarityCase(width: 9, height: 31), SimilarityCase(width: 40, height: 25),
    SimilarityCase(width: 121, height: 77), SimilarityCase(width: 239, height: 230),
    SimilarityCase(width: 300, height: 257), SimilarityCase(width: 64, height: 70, channels: 1),
    SimilarityCase(width: 65, height: 33, channels: 4, background: 0.1),
    SimilarityCase(width: 65, height: 33, channels: 4, background: 0.9),
  ]
  static let instructionSets = [CPIXELS_ISA_BEST, CPIXELS_ISA_AVX2, CPIXELS_ISA_AVX512, CPIXELS_ISA_NEON].filter {
    cpixels_isa_is_available($0)
  }

  @Test("every instruction set returns the scalar score", arguments: cases)
  func agrees(test: SimilarityCase) {
    for step in [3, 12, 40] {
      let scalar = test.score(test.coarse(step), CPIXELS_ISA_SCALAR)
      for isa in Self.instructionSets {
        let score = test.score(test.coarse(step), isa)
        #expect(abs(score - scalar) < 0.005, "step \(step), instruction set \(isa.rawValue): \(score), not \(scalar)")
      }
    }
  }

  @Test(
    "AVX-512 returns the score of AVX2", .enabled(if: cpixels_isa_is_available(CPIXELS_ISA_AVX512)), arguments: cases)
  func isSame(test: SimilarityCase) {
    let coarse = test.coarse(12)
    #expect(test.score(coarse, CPIXELS_ISA_AVX512) == test.score(coarse, CPIXELS_ISA_AVX2))
  }

  @Test("the errors of some rows of a large image stand for those of all")
  func samplesRows() {
    // From 256 rows on, every third one is compared.
    for step in [6, 12, 24] {
      let scores = [255, 256].map { height in
        let test = SimilarityCase(width: 300, height: height)
        return test.score(test.coarse(step), CPIXELS_ISA_BEST)
      }
      #expect(abs(scores[0] - scores[1]) < 0.3, "step \(step): \(scores)")
    }
  }

  @Test("equal images score 100, and coarser ones less and less", arguments: cases)
  func falls(test: SimilarityCase) {
    for isa in [CPIXELS_ISA_SCALAR, CPIXELS_ISA_BEST] {
      #expect(test.score(test.image, isa) == 100)
      let scores = [2, 6, 20, 60].map { test.score(test.coarse($0), isa) }
      #expect(scores == scores.sorted(by: >) && scores[0] < 99.9)
    }
  }

  @Test("the score does not depend on how rows are portioned, and no byte after the rows is read")
  func portions() throws {
    for channels in [1, 3, 4] {
      let test = SimilarityCase(width: 61, height: 43, channels: channels)
      let (image, result) = (try FencedBytes(test.image), try FencedBytes(test.coarse(9)))
      let scores = [1, 7, 43].map { test.score(image.bytes, result.bytes, CPIXELS_ISA_BEST, portion: $0) }
      #expect(scores[0] == scores[1] && scores[1] == scores[2])
    }
  }

  @Test("what is behind transparent pixels does not count, and the background does")
  func transparency() {
    let test = SimilarityCase(width: 32, height: 32, channels: 4, background: 0.1)
    var (hidden, other) = (test.image, test.image)
    for pixel in stride(from: 0, to: hidden.count, by: 4) {
      hidden[pixel + 3] = 0
      other[pixel + 3] = 0
      other[pixel] = 255 - other[pixel]
    }
    #expect(test.score(hidden, other, CPIXELS_ISA_BEST) == 100)
    #expect(test.score(test.image, hidden, CPIXELS_ISA_BEST) < 80)
  }

  @Test("options out of range are refused")
  func refuses() {
    var byteCount = 0
    for test in [
      SimilarityCase(width: 7, height: 8), SimilarityCase(width: 8, height: 7),
      SimilarityCase(width: 1 << 20 + 1, height: 8), SimilarityCase(width: 8, height: 8, channels: 2),
      SimilarityCase(width: 8, height: 8, channels: 4, background: 1.1),
      SimilarityCase(width: 8, height: 8, channels: 4, background: .nan),
    ] {
      var options = test.options(CPIXELS_ISA_BEST)
      #expect(!cpixels_similarity_measure(&options, &byteCount))
    }
  }
}
