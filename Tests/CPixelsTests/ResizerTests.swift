import CPixels
import Testing

@Suite("Resizer")
struct ResizerTests {
  static let cases = [
    ResizeCase((64, 48), (32, 24)), ResizeCase((61, 47), (17, 13)), ResizeCase((61, 47), (17, 13), channels: 3),
    ResizeCase((61, 47), (17, 13), channels: 4), ResizeCase((200, 150), (96, 72)),
    ResizeCase((200, 150), (96, 72), channels: 3), ResizeCase((13, 9), (40, 31)),
    ResizeCase((13, 9), (40, 31), channels: 4), ResizeCase((130, 9), (400, 31)), ResizeCase((1, 1), (5, 3)),
    ResizeCase((50, 40), (1, 1), channels: 3), ResizeCase((300, 2), (3, 2)),
    ResizeCase((40, 30), (40, 30)), ResizeCase((40, 30), (40, 15), channels: 3), ResizeCase((40, 30), (20, 30)),
    // Just enough and just too few samples for a vector; taps too far apart for one; a kernel of 1200 taps.
    ResizeCase((16, 16), (15, 15)), ResizeCase((17, 3), (16, 2)), ResizeCase((70, 5), (69, 5)),
    ResizeCase((403, 31), (100, 7)), ResizeCase((211, 66), (50, 31), channels: 3), ResizeCase((1200, 400), (6, 2)),
    // Scale and offset independent of the sizes, as for chroma planes.
    ResizeCase((33, 21), (21, 11), offset: -0.75), ResizeCase((101, 75), (50, 37), scale: 0.99, offset: 0.25),
    ResizeCase((90, 40), (50, 20), scale: 1.05, offset: 3), ResizeCase((40, 40), (10, 10), offset: 200),
    ResizeCase((40, 40), (10, 10), channels: 3, offset: -200),
    ResizeCase((20, 20), (39, 39), kernel: CPIXELS_KERNEL_TRIANGLE),
    ResizeCase((2, 2), (3, 4), kernel: CPIXELS_KERNEL_BOX),
    ResizeCase((120, 20), (239, 39), channels: 3, offset: -0.25, kernel: CPIXELS_KERNEL_TRIANGLE),
    ResizeCase((200, 150), (143, 107), kernel: CPIXELS_KERNEL_DOUBLED_LANCZOS3),
    ResizeCase((90, 40), (90, 40), kernel: CPIXELS_KERNEL_DOUBLED_LANCZOS3),
    ResizeCase((301, 77), (64, 31), channels: 3, offset: 0.25, kernel: CPIXELS_KERNEL_DOUBLED_LANCZOS3),
    ResizeCase((5, 3), (4, 2), kernel: CPIXELS_KERNEL_DOUBLED_LANCZOS3),
    ResizeCase((200, 150), (96, 72), emphasis: 1.0 / 16), ResizeCase((504, 378), (300, 225), emphasis: 1.0 / 16),
    ResizeCase((301, 77), (64, 31), channels: 3, offset: 0.25, emphasis: 0.25),
    ResizeCase((40, 30), (40, 30), emphasis: 1.0 / 16), ResizeCase((3, 2), (2, 1), emphasis: 0.25),
    ResizeCase((16, 9), (33, 20), channels: 4, emphasis: 0.1),
    // Taps for one and for two of the widest loads, and at their limit; windows of whole vectors, and one tap less.
    ResizeCase((160, 12), (36, 3), channels: 3), ResizeCase((700, 50), (100, 7), channels: 4),
    ResizeCase((661, 20), (80, 3)), ResizeCase((664, 20), (80, 3)), ResizeCase((1300, 60), (64, 5), channels: 3),
    ResizeCase((2133, 20), (200, 2)), ResizeCase((192, 40), (19, 4)), ResizeCase((191, 40), (19, 4), offset: 1.5),
    ResizeCase((900, 30), (50, 2), channels: 4, emphasis: 1.0 / 16),
    // Kernels on request; no sample is at the edge of a mean.
    ResizeCase((200, 150), (96, 72), channels: 3, kernel: CPIXELS_KERNEL_LANCZOS2),
    ResizeCase((61, 47), (170, 130), kernel: CPIXELS_KERNEL_LANCZOS2),
    ResizeCase((200, 150), (96, 72), channels: 3, kernel: CPIXELS_KERNEL_MITCHELL),
    ResizeCase((61, 47), (170, 130), channels: 4, kernel: CPIXELS_KERNEL_MITCHELL),
    ResizeCase((200, 150), (96, 72), channels: 3, kernel: CPIXELS_KERNEL_CUBIC),
    ResizeCase((13, 9), (40, 31), kernel: CPIXELS_KERNEL_CUBIC),
    ResizeCase((201, 150), (67, 50), channels: 3, kernel: CPIXELS_KERNEL_MEAN),
    ResizeCase((335, 150), (67, 50), kernel: CPIXELS_KERNEL_MEAN),
  ]
  static let instructionSets = [CPIXELS_ISA_SCALAR, CPIXELS_ISA_AVX2, CPIXELS_ISA_AVX512, CPIXELS_ISA_NEON]
    .filter(cpixels_isa_is_available)

  @Test("is within half a level of a double-precision reference before rounding", arguments: cases)
  func agreesWithReference(test: ResizeCase) {
    let source = noise(test.sourceSampleCount)
    let expected = ResizeReference(test).resize(source.map(Double.init)).map { min(255, max(0, $0)) }
    let errors = zip(test.resize(source, isa: CPIXELS_ISA_SCALAR), expected).map { Double($0) - $1 }
    #expect(errors.allSatisfy { abs($0) < 1 })
    if errors.count > 1000 {
      #expect(abs(errors.reduce(0, +) / Double(errors.count)) < 0.02)
    }
  }

  @Test("returns the same samples with every instruction set", arguments: cases)
  func instructionSetsAgree(test: ResizeCase) {
    let source = noise(test.sourceSampleCount)
    let wide = source.enumerated().map { UInt16($1) * 257 ^ UInt16(truncatingIfNeeded: $0) }
    let scalar = test.resize(source, isa: CPIXELS_ISA_SCALAR)
    let wideScalar = test.resize(wide, isa: CPIXELS_ISA_SCALAR)
    for isa in Self.instructionSets + [CPIXELS_ISA_BEST] {
      #expect(test.resize(source, isa: isa) == scalar)
      #expect(test.resize(wide, isa: isa) == wideScalar)
    }
  }

  @Test("returns the same samples with weights that it copies from another one", arguments: instructionSets)
  func knownWeights(isa: cpixels_isa) {
    for (before, test) in zip(Self.cases, Self.cases.dropFirst()) {
      let source = noise(test.sourceSampleCount)
      let expected = test.resize(source, isa: isa)
      for known in [before, test] {
        for sampleSize in [1, 2] {
          let driver = ResizeDriver(known, sampleSize: sampleSize, isa: isa)
          #expect(test.resize(source, isa: isa, known: driver) == expected)
        }
      }
      let other = ResizeDriver(test, sampleSize: 1, isa: CPIXELS_ISA_SCALAR)
      #expect(test.resize(source, isa: isa, known: other) == expected)
    }
  }

  @Test("is within a level of the reference in 16 bits, with every instruction set", arguments: cases)
  func agreesWithReferenceIn16Bits(test: ResizeCase) {
    let source = noise(test.sourceSampleCount).map { UInt16($0) * 255 }
    let expected = ResizeReference(test).resize(source.map(Double.init)).map { min(65535, max(0, $0)) }
    for isa in Self.instructionSets {
      #expect(zip(test.resize(source, isa: isa), expected).allSatisfy { abs(Double($0) - $1) < 1 })
    }
  }

  @Test("returns the same rows however they are pushed and read", arguments: [1, 2, 7, 1000], [1, 3, 1000])
  func portionsDoNotMatter(pushed: Int, read: Int) {
    for test in [ResizeCase((61, 97), (17, 40), channels: 3), ResizeCase((61, 41), (50, 90))] {
      let source = noise(test.sourceSampleCount)
      let wide = source.map { UInt16($0) * 257 }
      let portions = ResizePortions(pushed: pushed, read: read)
      #expect(test.resize(source, isa: CPIXELS_ISA_BEST, portions) == test.resize(source, isa: CPIXELS_ISA_BEST))
      #expect(test.resize(wide, isa: CPIXELS_ISA_BEST, portions) == test.resize(wide, isa: CPIXELS_ISA_BEST))
    }
  }

  @Test("keeps a constant image constant", arguments: [0, 1, 128, 254, 255] as [UInt8])
  func constant(value: UInt8) {
    for test in Self.cases {
      let source = [UInt8](repeating: value, count: test.sourceSampleCount)
      let wide = [UInt16](repeating: UInt16(value) * 257, count: test.sourceSampleCount)
      for isa in Self.instructionSets {
        #expect(test.resize(source, isa: isa).allSatisfy { $0 == value })
        #expect(test.resize(wide, isa: isa).allSatisfy { $0 == UInt16(value) * 257 })
      }
    }
  }

  @Test("copies when no axis changes", arguments: [1, 3, 4])
  func identity(channels: Int) {
    let test = ResizeCase((77, 13), (77, 13), channels: channels)
    let source = noise(test.sourceSampleCount)
    for isa in Self.instructionSets {
      #expect(test.resize(source, isa: isa) == source)
      #expect(test.resize(source.map { UInt16($0) * 257 }, isa: isa) == source.map { UInt16($0) * 257 })
    }
  }

  @Test("repeats the edge for taps outside the source")
  func outside() {
    let test = ResizeCase((40, 40), (10, 10), offset: 200)
    let source = noise(test.sourceSampleCount)
    #expect(test.resize(source, isa: CPIXELS_ISA_BEST).allSatisfy { $0 == source[40 * 40 - 1] })
  }

  @Test("returns a row at most one source row after its last tap", arguments: [1, 4])
  func promptness(channels: Int) {
    let test = ResizeCase((30, 61), (10, 29), channels: channels)
    let source = noise(test.sourceSampleCount)
    let driver = ResizeDriver(test, sampleSize: 1, isa: CPIXELS_ISA_BEST)
    var output = [UInt8](repeating: 0, count: test.destinationRowCount)
    #expect(driver.read(into: &output, rowCount: 1) == 0)
    var read = 0
    for row in 0..<61 {
      #expect(driver.push(source, from: row, rowCount: 1) == 1)
      while driver.read(into: &output, rowCount: 1) == 1 { read += 1 }
      let due = (0..<29).prefix { (Double($0) + 0.5 + 3) * 61 / 29 - 0.5 < Double(row) }
      #expect(read >= due.count)
    }
    #expect(read == 29)
    #expect(driver.push(source, from: 0, rowCount: 5) == 5)
  }

  @Test("reads nothing beyond the supplied rows", arguments: cases)
  func staysInsideRows(test: ResizeCase) throws {
    let row = Array(noise(test.sourceSampleCount).prefix(test.sourceRowSampleCount))
    let fenced = try FencedBytes(row)
    for isa in Self.instructionSets {
      let driver = ResizeDriver(test, sampleSize: 1, isa: isa)
      #expect(cpixels_resizer_push(driver.resizer, fenced.bytes, row.count, 1) == 1)
      #expect(cpixels_resizer_push(driver.resizer, fenced.bytes, row.count, 1) == 1)
    }
  }

  @Test("refuses options out of range")
  func refusals() {
    func isAccepted(_ change: (inout cpixels_resizer_options) -> Void) -> Bool {
      var options = ResizeCase((4, 4), (2, 2)).options(CPIXELS_SAMPLE_U8, CPIXELS_ISA_BEST)
      change(&options)
      var byteCount = 0
      return cpixels_resizer_measure(&options, &byteCount)
    }
    #expect(isAccepted { _ in })
    #expect(!isAccepted { $0.channels = 2 })
    #expect(!isAccepted { $0.horizontal.source_count = 0 })
    #expect(!isAccepted { $0.vertical.destination_count = 0 })
    #expect(!isAccepted { $0.vertical.destination_count = 1 << 27 })
    #expect(!isAccepted { $0.vertical.ratio = 0 })
    #expect(!isAccepted { $0.vertical.ratio = .nan })
    #expect(!isAccepted { $0.horizontal.offset = .infinity })
  }

  @Test("needs little more memory than the rows under the kernel")
  func memoryIsSmall() {
    var options = ResizeCase((2016, 1512), (960, 720)).options(CPIXELS_SAMPLE_U8, CPIXELS_ISA_BEST)
    var byteCount = 0
    #expect(cpixels_resizer_measure(&options, &byteCount))
    #expect(byteCount < 160_000)
  }
}
