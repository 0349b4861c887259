import CPixels
import Foundation
import Testing

/// An area filter applied to a noise image.
struct AreaCase: Sendable, CustomTestStringConvertible {
  var options: cpixels_area_options
  let testDescription: String

  init(
    _ kind: cpixels_area_kind, _ size: (Int, Int), channels: Int = 3, radius: Double = 1, amount: Double = 1,
    threshold: Double = 0, block: (size: Int, width: Int, height: Int) = (1, 1, 1)
  ) {
    options = cpixels_area_options(
      kind: kind, width: UInt32(size.0), height: UInt32(size.1), channels: UInt8(channels), radius: radius,
      amount: amount, threshold: threshold, block: UInt32(block.size), first_width: UInt32(block.width),
      first_height: UInt32(block.height), isa: CPIXELS_ISA_BEST)
    testDescription =
      "kind \(kind.rawValue), \(size), \(channels) channels, radius \(radius), amount \(amount), "
      + "threshold \(threshold), block \(block)"
  }

  var rowByteCount: Int { Int(options.width) * Int(options.channels) }

  /// Pushes and reads alternately until every row is read.
  func run(_ source: [UInt8], _ isa: cpixels_isa, pushed: Int = 1000, read: Int = 16) -> [UInt8] {
    var options = options
    options.isa = isa
    var byteCount = 0
    #expect(cpixels_area_measure(&options, &byteCount))
    let memory = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 64)
    defer { memory.deallocate() }
    memory.initializeMemory(as: UInt8.self, repeating: 0xA5, count: byteCount)
    guard let filter = cpixels_area_init(&options, memory) else { return [] }
    let height = Int(options.height)
    var result = [UInt8](repeating: 7, count: source.count + 1)
    var (inputRow, outputRow) = (0, 0)
    while outputRow < height {
      let count = min(pushed, height - inputRow)
      let taken = source.withUnsafeBufferPointer {
        cpixels_area_push(filter, $0.baseAddress! + inputRow * rowByteCount, rowByteCount, count)
      }
      let given = result.withUnsafeMutableBufferPointer {
        cpixels_area_read(filter, $0.baseAddress! + outputRow * rowByteCount, rowByteCount, read)
      }
      if taken == 0, given == 0 { break }
      inputRow += taken
      outputRow += given
    }
    #expect(outputRow == height && result.last == 7)
    return result.dropLast()
  }
}

/// The same filter in double precision, written directly from the definitions.
struct AreaReference {
  private let options: cpixels_area_options
  private let width: Int
  private let height: Int
  private let channels: Int

  init(_ test: AreaCase) {
    options = test.options
    (width, height, channels) = (Int(options.width), Int(options.height), Int(options.channels))
  }

  /// Returns the result before rounding; the colors of transparent pixels are 0.
  func filter(_ source: [UInt8]) -> [Double] {
    let wide = premultiplied(source)
    let filtered = options.kind == CPIXELS_AREA_PIXELATE ? blocks(wide) : blurred(wide)
    if options.kind == CPIXELS_AREA_SHARPEN { return sharpened(source, straight(filtered)) }
    let mixed = zip(wide, filtered).map { $0 + options.amount * ($1 - $0) }
    return straight(mixed)
  }

  private func premultiplied(_ source: [UInt8]) -> [Double] {
    guard channels == 4 else { return source.map(Double.init) }
    return source.indices.map { index in
      let alpha = Double(source[index / 4 * 4 + 3])
      return index % 4 == 3 ? alpha : Double(source[index]) * alpha / 255
    }
  }

  private func straight(_ samples: [Double]) -> [Double] {
    guard channels == 4 else { return samples }
    return samples.indices.map { index in
      let alpha = samples[index / 4 * 4 + 3]
      return index % 4 == 3 ? alpha : alpha > 0 ? samples[index] * 255 / alpha : 0
    }
  }

  /// Blurs with G(x) = exp(-x^2 / (2 s^2)); the edge pixels are repeated outside the image.
  private func blurred(_ samples: [Double]) -> [Double] {
    let reach = Int((5 * options.radius).rounded(.up))
    let raw = (-reach...reach).map { exp(-Double($0 * $0) / (2 * options.radius * options.radius)) }
    let weights = raw.map { $0 / raw.reduce(0, +) }
    func pass(_ samples: [Double], _ at: (_ x: Int, _ y: Int, _ offset: Int) -> Int) -> [Double] {
      var result = samples
      for y in 0..<height {
        for x in 0..<width {
          for channel in 0..<channels {
            var sum = 0.0
            for (tap, weight) in weights.enumerated() {
              sum += weight * samples[at(x, y, tap - reach) * channels + channel]
            }
            result[(y * width + x) * channels + channel] = sum
          }
        }
      }
      return result
    }
    let across = pass(samples) { x, y, offset in y * width + min(width - 1, max(0, x + offset)) }
    return pass(across) { x, y, offset in min(height - 1, max(0, y + offset)) * width + x }
  }

  private func blocks(_ samples: [Double]) -> [Double] {
    func block(_ place: Int, _ first: UInt32) -> Int {
      place < Int(first) ? 0 : 1 + (place - Int(first)) / Int(options.block)
    }
    func key(_ index: Int) -> [Int] {
      let pixel = index / channels
      return [
        block(pixel % width, options.first_width), block(pixel / width, options.first_height), index % channels,
      ]
    }
    var sums: [[Int]: (sum: Double, count: Double)] = [:]
    for index in samples.indices {
      let old = sums[key(index)] ?? (0, 0)
      sums[key(index)] = (old.sum + samples[index], old.count + 1)
    }
    return samples.indices.map { index in sums[key(index)].map { $0.sum / $0.count } ?? 0 }
  }

  private func sharpened(_ source: [UInt8], _ filtered: [Double]) -> [Double] {
    source.indices.map { index in
      let color = Double(source[index])
      if channels == 4, index % 4 == 3 { return color }
      let difference = color - filtered[index]
      return abs(difference) <= options.threshold * 255 ? color : color + options.amount * difference
    }
  }
}

@Suite("Area filters")
struct AreaFilterTests {
  static let cases: [AreaCase] = [3, 4].flatMap { channels in
    [
      AreaCase(CPIXELS_AREA_BLUR, (40, 31), channels: channels, radius: 0.3),
      AreaCase(CPIXELS_AREA_BLUR, (40, 31), channels: channels, radius: 1),
      AreaCase(CPIXELS_AREA_BLUR, (37, 50), channels: channels, radius: 3.7, amount: 0.6),
      AreaCase(CPIXELS_AREA_BLUR, (70, 9), channels: channels, radius: 20),
      AreaCase(CPIXELS_AREA_BLUR, (1, 1), channels: channels, radius: 2),
      AreaCase(CPIXELS_AREA_SHARPEN, (40, 31), channels: channels, radius: 1.2, amount: 0.8),
      AreaCase(CPIXELS_AREA_SHARPEN, (33, 20), channels: channels, radius: 4, amount: 0.9, threshold: 0.1),
      AreaCase(CPIXELS_AREA_PIXELATE, (40, 31), channels: channels, block: (8, 8, 8)),
      AreaCase(CPIXELS_AREA_PIXELATE, (41, 30), channels: channels, amount: 0.3, block: (7, 3, 5)),
      AreaCase(CPIXELS_AREA_PIXELATE, (300, 260), channels: channels, block: (256, 256, 256)),
    ]
  }

  /// Opaque enough for colors to be distinguished, and smooth enough near a threshold that rounding does not decide.
  private static func image(_ test: AreaCase) -> [UInt8] {
    let samples = noise(test.rowByteCount * Int(test.options.height))
    guard test.options.channels == 4 else { return samples }
    return samples.enumerated().map { $0.offset % 4 == 3 ? 64 + $0.element / 4 * 3 : $0.element }
  }

  @Test("is within a level of a double-precision reference", arguments: cases)
  func agreesWithReference(test: AreaCase) {
    let source = Self.image(test)
    let expected = AreaReference(test).filter(source)
    let result = test.run(source, CPIXELS_ISA_SCALAR)
    let errors = zip(result, expected).map { abs(Double($0) - min(255, max(0, $1))) }
    // A difference at the threshold may fall on either side.
    let outliers = errors.filter { $0 > 1.05 }.count
    #expect(test.options.threshold > 0 ? outliers * 200 < errors.count : outliers == 0, "worst \(errors.max() ?? 0)")
    #expect(errors.reduce(0, +) / Double(errors.count) < 0.45)
  }

  @Test("returns the same samples with every instruction set", arguments: cases)
  func instructionSetsAgree(test: AreaCase) {
    let source = noise(test.rowByteCount * Int(test.options.height))
    let scalar = test.run(source, CPIXELS_ISA_SCALAR)
    for isa in ResizerTests.instructionSets + [CPIXELS_ISA_BEST] { #expect(test.run(source, isa) == scalar) }
  }

  @Test("returns the same rows however they are pushed and read", arguments: cases)
  func portionsDoNotMatter(test: AreaCase) {
    let source = noise(test.rowByteCount * Int(test.options.height))
    let whole = test.run(source, CPIXELS_ISA_BEST)
    for (pushed, read) in [(1, 1), (3, 2), (2, 5), (1000, 1)] {
      #expect(test.run(source, CPIXELS_ISA_BEST, pushed: pushed, read: read) == whole)
    }
  }

  @Test("an image of one color stays unchanged, whatever its alpha", arguments: cases)
  func plainImagesStay(test: AreaCase) {
    for pixel: [UInt8] in [[200, 30, 99, 255], [0, 255, 7, 128], [255, 255, 255, 40]] {
      let pixel = Array(pixel.prefix(Int(test.options.channels)))
      let source = (0..<Int(test.options.width * test.options.height)).flatMap { _ in pixel }
      #expect(test.run(source, CPIXELS_ISA_BEST) == source)
    }
  }

  @Test("color behind transparent pixels never shows")
  func transparentColorIsHidden() {
    // Red with alpha on the left, transparent green on the right: no green may show.
    let test = AreaCase(CPIXELS_AREA_BLUR, (20, 4), channels: 4, radius: 2)
    let source = (0..<80).flatMap { ($0 % 20 < 10 ? [255, 0, 0, 255] : [0, 255, 0, 0]) as [UInt8] }
    let result = test.run(source, CPIXELS_ISA_BEST)
    for pixel in 0..<80 {
      #expect(result[4 * pixel + 1] == 0)
      if result[4 * pixel + 3] > 0 { #expect(result[4 * pixel] == 255) }
    }
    #expect((1..<254).contains(result[4 * 10 + 3]))
  }

  @Test("an intensity of 0 and a sharpening of 0 change nothing", arguments: [3, 4])
  func zeroAmount(channels: Int) {
    for kind in [CPIXELS_AREA_BLUR, CPIXELS_AREA_SHARPEN, CPIXELS_AREA_PIXELATE] {
      let test = AreaCase(kind, (50, 20), channels: channels, radius: 3, amount: 0, block: (4, 4, 4))
      let source = Self.image(test)
      #expect(test.run(source, CPIXELS_ISA_BEST) == source)
    }
  }

  @Test("buffers the rows under its window, not the image")
  func memoryIsBounded() {
    func measured(_ height: Int) -> Int {
      var options = AreaCase(CPIXELS_AREA_BLUR, (1000, height), radius: 5, amount: 0.5).options
      var byteCount = 0
      #expect(cpixels_area_measure(&options, &byteCount))
      return byteCount
    }
    #expect(measured(1000) == measured(100_000))
    #expect(measured(1000) < 600_000)
  }

  @Test(
    "options out of range are refused",
    arguments: [
      AreaCase(CPIXELS_AREA_BLUR, (0, 1)), AreaCase(CPIXELS_AREA_BLUR, (1, 1), channels: 1),
      AreaCase(CPIXELS_AREA_BLUR, (1, 1), radius: 0), AreaCase(CPIXELS_AREA_BLUR, (1, 1), radius: .nan),
      AreaCase(CPIXELS_AREA_BLUR, (1, 1), radius: 101), AreaCase(CPIXELS_AREA_SHARPEN, (1, 1), amount: 6),
      AreaCase(CPIXELS_AREA_SHARPEN, (1, 1), threshold: -1), AreaCase(CPIXELS_AREA_BLUR, (1, 1), amount: 1.1),
      AreaCase(CPIXELS_AREA_PIXELATE, (1, 1), block: (257, 1, 1)),
      AreaCase(CPIXELS_AREA_PIXELATE, (1, 1), block: (4, 5, 1)),
      AreaCase(CPIXELS_AREA_PIXELATE, (1, 1), block: (4, 4, 0)),
    ])
  func invalidOptions(test: AreaCase) {
    var options = test.options
    var byteCount = 0
    #expect(!cpixels_area_measure(&options, &byteCount))
    #expect(cpixels_area_init(&options, UnsafeMutableRawPointer(bitPattern: 64)!) == nil)
  }
}
