import CPixels
import Testing

/// `Tests/EndToEnd/test_resampling.py` compares with Pillow itself.
@Suite("Exact resizer")
struct ExactResizerTests {
  static let kernels = [
    CPIXELS_KERNEL_LANCZOS3, CPIXELS_KERNEL_LANCZOS2, CPIXELS_KERNEL_MITCHELL, CPIXELS_KERNEL_CUBIC,
    CPIXELS_KERNEL_TRIANGLE, CPIXELS_KERNEL_MEAN, CPIXELS_KERNEL_NEAREST,
  ]
  static let sizes: [((Int, Int), (Int, Int))] = [
    ((64, 48), (32, 24)), ((61, 47), (17, 13)), ((13, 9), (40, 31)), ((1, 1), (5, 3)), ((50, 40), (1, 1)),
    ((300, 2), (3, 2)), ((40, 30), (40, 15)), ((40, 30), (20, 30)), ((40, 30), (40, 30)), ((7, 403), (7, 100)),
  ]
  static let cases = kernels.flatMap { kernel in
    sizes.enumerated().map { index, size in
      ResizeCase(size.0, size.1, channels: [1, 3, 4][index % 3], kernel: kernel, isExact: true)
    }
  }

  /// Returns the taps of a destination sample with weights in Q22, as Pillow computes them.
  private func taps(_ test: ResizeCase, _ d: Int, _ source: Int, _ destination: Int) -> [(index: Int, weight: Int)] {
    let ratio = test.ratio(source, destination)
    if source == destination { return [(d, 1 << 22)] }
    let center = (Double(d) + 0.5) * ratio
    if test.kernel == CPIXELS_KERNEL_NEAREST { return [(Int(center), 1 << 22)] }
    let (scale, reference) = (max(1, ratio), ResizeReference(test))
    let weights = (0..<source).map { index in
      let x = (Double(index) - center + 0.5) * (1 / scale)
      let isUnder = x > -0.5 && x <= 0.5
      return (index: index, weight: test.kernel == CPIXELS_KERNEL_MEAN ? (isUnder ? 1 : 0) : reference.kernel(x))
    }
    let sum = weights.reduce(0) { $0 + $1.weight }
    return weights.filter { $0.weight != 0 }.map { index, weight in
      (index, Int(weight / sum * Double(1 << 22) + (weight < 0 ? -0.5 : 0.5)))
    }
  }

  private func rounded(_ sum: Int) -> Int { min(255, max(0, (sum + (1 << 21)) >> 22)) }

  private func expected(_ test: ResizeCase, _ source: [UInt8]) -> [UInt8] {
    let (width, height) = test.source
    let channels = test.channels
    let mixes = channels == 4 && test.kernel != CPIXELS_KERNEL_NEAREST
    var samples = source.map(Int.init)
    for pixel in stride(from: 0, to: mixes ? samples.count : 0, by: 4) {
      for c in 0..<3 { samples[pixel + c] = Int((Double(samples[pixel + c] * samples[pixel + 3]) / 255).rounded()) }
    }
    var middle: [Int] = []
    for y in 0..<height {
      for x in 0..<test.destination.width {
        let taps = taps(test, x, width, test.destination.width)
        for c in 0..<channels {
          let sum = taps.reduce(0) { $0 + $1.weight * samples[(y * width + $1.index) * channels + c] }
          middle.append(rounded(sum))
        }
      }
    }
    let count = test.destinationRowCount
    var result: [Int] = []
    for y in 0..<test.destination.height {
      let taps = taps(test, y, height, test.destination.height)
      for x in 0..<count { result.append(rounded(taps.reduce(0) { $0 + $1.weight * middle[$1.index * count + x] })) }
    }
    for pixel in stride(from: 0, to: mixes ? result.count : 0, by: 4) where result[pixel + 3] > 0 {
      for c in 0..<3 { result[pixel + c] = min(255, 255 * result[pixel + c] / result[pixel + 3]) }
    }
    return result.map { UInt8($0) }
  }

  @Test(
    "has the samples of the reference with every instruction set, however rows are pushed and read", arguments: cases)
  func samples(test: ResizeCase) {
    let source = noise(test.sourceSampleCount)
    let expected = expected(test, source)
    for isa in ResizerTests.instructionSets + [CPIXELS_ISA_BEST] {
      for portions in [(1, 1), (7, 3), (400, 400)] {
        let result = test.resize(source, isa: isa, ResizePortions(pushed: portions.0, read: portions.1))
        #expect(zip(result, expected).count { $0 != $1 } == 0 && result.count == expected.count)
      }
    }
  }

  /// Returns samples of which rows and columns are exchanged, or in reverse order.
  private func rearranged(_ samples: [UInt8], _ size: (width: Int, height: Int), _ channels: Int, _ change: Change)
    -> [UInt8]
  {
    let target = change == .transposed ? (size.height, size.width) : (size.width, size.height)
    return (0..<target.1).flatMap { y in
      (0..<target.0).flatMap { x in
        let place =
          switch change {
          case .transposed: x * size.width + y
          case .mirrored: y * size.width + size.width - 1 - x
          case .flipped: (size.height - 1 - y) * size.width + x
          }
        return samples[place * channels..<(place + 1) * channels]
      }
    }
  }

  enum Change: CaseIterable { case transposed, mirrored, flipped }

  @Test("has the samples of the displayed image, however it is stored", arguments: cases, Change.allCases)
  func displayed(test: ResizeCase, change: Change) {
    let source = noise(test.sourceSampleCount)
    var stored = test
    switch change {
    case .transposed:
      (stored.source, stored.destination) = (
        (test.source.height, test.source.width), (test.destination.height, test.destination.width)
      )
      stored.isColumnsFirst = true
    case .mirrored: stored.isReversed.horizontal = true
    case .flipped: stored.isReversed.vertical = true
    }
    let result = stored.resize(
      rearranged(source, test.source, test.channels, change), isa: CPIXELS_ISA_BEST, ResizePortions(pushed: 7, read: 3))
    #expect(rearranged(result, stored.destination, test.channels, change) == expected(test, source))
  }

  @Test("refuses what it cannot compute")
  func refusals() {
    let refused = [
      ResizeCase((9, 9), (5, 5), channels: 2, isExact: true), ResizeCase((9, 9), (5, 5), emphasis: 0.1, isExact: true),
      ResizeCase((9, 9), (5, 5), kernel: CPIXELS_KERNEL_DOUBLED_LANCZOS3, isExact: true),
    ]
    var byteCount = 0
    for test in refused {
      var options = test.options(CPIXELS_SAMPLE_U8, CPIXELS_ISA_BEST)
      #expect(!cpixels_exact_measure(&options, &byteCount))
    }
    var wide = ResizeCase((9, 9), (5, 5), isExact: true).options(CPIXELS_SAMPLE_U16, CPIXELS_ISA_BEST)
    #expect(!cpixels_exact_measure(&wide, &byteCount))
  }
}
