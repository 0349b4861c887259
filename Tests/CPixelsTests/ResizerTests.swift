import CPixels
import Testing

@Suite("Resizer")
struct ResizerTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var source: (Int, Int)
    var destination: (Int, Int)
    var channels = 1
    var offset = 0.0
    var kernel = CPIXELS_KERNEL_LANCZOS3
    var testDescription: String { "\(source) to \(destination), \(channels) channels, offset \(offset)" }
  }

  static let cases = [
    Case(source: (64, 48), destination: (32, 24)), Case(source: (61, 47), destination: (17, 13)),
    Case(source: (61, 47), destination: (17, 13), channels: 3),
    Case(source: (61, 47), destination: (17, 13), channels: 4),
    Case(source: (200, 150), destination: (96, 72), channels: 3), Case(source: (13, 9), destination: (40, 31)),
    Case(source: (13, 9), destination: (40, 31), channels: 4), Case(source: (1, 1), destination: (5, 3)),
    Case(source: (50, 40), destination: (1, 1), channels: 3), Case(source: (300, 2), destination: (3, 2)),
    Case(source: (40, 30), destination: (40, 30)), Case(source: (40, 30), destination: (40, 15), channels: 3),
    Case(source: (33, 21), destination: (21, 11), offset: -0.75),
    Case(source: (20, 20), destination: (39, 39), kernel: CPIXELS_KERNEL_TRIANGLE),
  ]

  @Test("agrees with a double-precision reference", arguments: cases)
  func agreesWithReference(test: Case) {
    let source = noise(test.source.0 * test.source.1 * test.channels)
    let expected = Reference(test).resize(source.map(Double.init))
    let actual = resize(source, test, isa: CPIXELS_ISA_SCALAR)
    var worst = 0.0
    for (ours, theirs) in zip(actual, expected) {
      worst = max(worst, abs(Double(ours) - min(255, max(0, theirs))))
    }
    // Half a level of rounding, and less than half a level of error before it.
    #expect(worst < 1.0)
  }

  @Test("gives the same samples with every instruction set", arguments: cases)
  func instructionSetsAgree(test: Case) {
    let source = noise(test.source.0 * test.source.1 * test.channels)
    let scalar = resize(source, test, isa: CPIXELS_ISA_SCALAR)
    for isa in [CPIXELS_ISA_AVX2, CPIXELS_ISA_BEST] where cpixels_isa_is_available(isa) {
      #expect(resize(source, test, isa: isa) == scalar)
    }
  }

  @Test("gives nearly the same 16-bit samples with every instruction set", arguments: cases)
  func instructionSetsAgreeIn16Bits(test: Case) {
    let source = noise(test.source.0 * test.source.1 * test.channels).map { UInt16($0) * 255 }
    let expected = Reference(test).resize(source.map(Double.init))
    for isa in [CPIXELS_ISA_SCALAR, CPIXELS_ISA_BEST] {
      for (ours, theirs) in zip(resize(source, test, isa: isa), expected) {
        #expect(abs(Double(ours) - min(65535, max(0, theirs))) < 1.5)
      }
    }
  }

  @Test("gives the same rows however they are pushed and read", arguments: [1, 7, 1000], [1, 3, 1000])
  func portionsDoNotMatter(pushed: Int, read: Int) {
    let test = Case(source: (61, 97), destination: (17, 40), channels: 3)
    let source = noise(61 * 97 * 3)
    let whole = resize(source, test, isa: CPIXELS_ISA_BEST)
    #expect(resize(source, test, isa: CPIXELS_ISA_BEST, pushing: pushed, reading: read) == whole)
  }

  @Test("keeps a constant picture constant", arguments: [0, 1, 128, 254, 255] as [UInt8])
  func constant(value: UInt8) {
    for test in Self.cases {
      let source = [UInt8](repeating: value, count: test.source.0 * test.source.1 * test.channels)
      #expect(resize(source, test, isa: CPIXELS_ISA_BEST).allSatisfy { $0 == value })
    }
  }

  @Test("writes only into the memory that it measured", arguments: cases)
  func memoryIsEnough(test: Case) {
    let source = noise(test.source.0 * test.source.1 * test.channels)
    // resize() guards the block on both sides.
    _ = resize(source, test, isa: CPIXELS_ISA_BEST)
  }

  @Test("refuses options out of range")
  func refusals() {
    let good = Case(source: (4, 4), destination: (2, 2))
    func isAccepted(_ change: (inout cpixels_resizer_options) -> Void) -> Bool {
      var options = self.options(good, CPIXELS_SAMPLE_U8, CPIXELS_ISA_BEST)
      change(&options)
      var byteCount = 0
      return cpixels_resizer_measure(&options, &byteCount)
    }
    #expect(isAccepted { _ in })
    #expect(!isAccepted { $0.channels = 2 })
    #expect(!isAccepted { $0.horizontal.source_count = 0 })
    #expect(!isAccepted { $0.vertical.destination_count = 0 })
    #expect(!isAccepted { $0.vertical.ratio = 0 })
    #expect(!isAccepted { $0.vertical.ratio = .nan })
    #expect(!isAccepted { $0.horizontal.offset = .infinity })
  }

  // MARK: Driving the resizer

  private func options(_ test: Case, _ sample: cpixels_sample, _ isa: cpixels_isa) -> cpixels_resizer_options {
    func axis(_ source: Int, _ destination: Int) -> cpixels_axis_options {
      cpixels_axis_options(
        source_count: UInt32(source), destination_count: UInt32(destination),
        ratio: Double(source) / Double(destination), offset: test.offset, kernel: test.kernel)
    }
    return cpixels_resizer_options(
      horizontal: axis(test.source.0, test.destination.0), vertical: axis(test.source.1, test.destination.1),
      channels: UInt8(test.channels), sample: sample, isa: isa)
  }

  private func resize<Sample: FixedWidthInteger>(
    _ source: [Sample], _ test: Case, isa: cpixels_isa, pushing: Int = 5, reading: Int = 5
  ) -> [Sample] {
    var options = options(test, Sample.self == UInt8.self ? CPIXELS_SAMPLE_U8 : CPIXELS_SAMPLE_U16, isa)
    var byteCount = 0
    #expect(cpixels_resizer_measure(&options, &byteCount))
    let guardBytes = 256
    let block = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount + 2 * guardBytes, alignment: 64)
    defer { block.deallocate() }
    for index in block.indices { block[index] = 0xA5 }
    let resizer = cpixels_resizer_init(&options, block.baseAddress! + guardBytes)!
    let sourceRow = test.source.0 * test.channels
    let row = test.destination.0 * test.channels
    var output = [Sample](repeating: 0, count: row * test.destination.1)
    var (pushed, read) = (0, 0)
    let size = MemoryLayout<Sample>.size
    while read < test.destination.1 {
      if pushed < test.source.1 {
        let count = min(pushing, test.source.1 - pushed)
        pushed += source.withUnsafeBytes {
          cpixels_resizer_push(resizer, $0.baseAddress! + pushed * sourceRow * size, sourceRow * size, count)
        }
      }
      let count = output.withUnsafeMutableBytes {
        cpixels_resizer_read(
          resizer, $0.baseAddress! + read * row * size, row * size, min(reading, test.destination.1 - read))
      }
      if count == 0, pushed == test.source.1 {
        Issue.record("stuck after \(read) rows")
        break
      }
      read += count
    }
    #expect(block.prefix(guardBytes).allSatisfy { $0 == 0xA5 } && block.suffix(guardBytes).allSatisfy { $0 == 0xA5 })
    return output
  }

  private func noise(_ count: Int) -> [UInt8] {
    var state: UInt32 = 12345
    return (0..<count).map { _ in
      state = state &* 1_664_525 &+ 1_013_904_223
      return UInt8(state >> 24)
    }
  }
}

/// The header's geometry, written as plainly as possible and in double precision.
private struct Reference {
  let test: ResizerTests.Case

  init(_ test: ResizerTests.Case) { self.test = test }

  func resize(_ source: [Double]) -> [Double] {
    let (sw, sh) = test.source
    let (dw, dh) = test.destination
    let channels = test.channels
    let across = (0..<dw).map { weights($0, sw, dw) }
    let down = (0..<dh).map { weights($0, sh, dh) }
    var middle = [Double](repeating: 0, count: dw * sh * channels)
    for y in 0..<sh {
      for x in 0..<dw {
        for c in 0..<channels {
          middle[(y * dw + x) * channels + c] = across[x].reduce(0) {
            $0 + $1.weight * source[(y * sw + $1.index) * channels + c]
          }
        }
      }
    }
    var result = [Double](repeating: 0, count: dw * dh * channels)
    for y in 0..<dh {
      for x in 0..<dw * channels {
        result[y * dw * channels + x] = down[y].reduce(0) { $0 + $1.weight * middle[$1.index * dw * channels + x] }
      }
    }
    return result
  }

  private func weights(_ d: Int, _ source: Int, _ destination: Int) -> [(index: Int, weight: Double)] {
    let ratio = Double(source) / Double(destination)
    if ratio == 1, test.offset == 0 { return [(d, 1)] }
    let stretch = max(1, ratio)
    let centre = (Double(d) + 0.5) * ratio + test.offset
    let reach = Int((3 * stretch).rounded(.up)) + 1
    let taps = (Int(centre) - reach...Int(centre) + reach).map { s in
      (index: min(source - 1, max(0, s)), weight: kernel((Double(s) + 0.5 - centre) / stretch))
    }
    let sum = taps.reduce(0) { $0 + $1.weight }
    return taps.map { ($0.index, $0.weight / sum) }
  }

  private func kernel(_ x: Double) -> Double {
    let x = abs(x)
    if test.kernel == CPIXELS_KERNEL_TRIANGLE { return max(0, 1 - x) }
    if x == 0 { return 1 }
    if x >= 3 { return 0 }
    let a = Double.pi * x
    return 3 * sine(a) * sine(a / 3) / (a * a)
  }

  /// By its series, since the C library's is not a declared dependency; arguments are below 10.
  private func sine(_ x: Double) -> Double {
    var (term, sum, n) = (x, x, 1.0)
    while abs(term) > 1e-18 {
      term *= -x * x / ((n + 1) * (n + 2))
      sum += term
      n += 2
    }
    return sum
  }
}
