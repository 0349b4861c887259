import CPixels
import Foundation
import Testing

/// A step of a color program, and the same in double precision.
struct ColorStepCase: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let step: cpixels_color_step
  /// Maps red, green and blue, 0 to 1, at a position to the unclamped result.
  let exact: @Sendable ([Double], _ right: Double, _ down: Double) -> [Double]

  init(
    _ description: String, _ kind: cpixels_color_step_kind, _ numbers: [Double],
    _ exact: @escaping @Sendable ([Double], Double, Double) -> [Double]
  ) {
    testDescription = description
    step = cpixels_color_step(kind, numbers)
    self.exact = exact
  }
}

extension cpixels_color_step {
  init(_ kind: cpixels_color_step_kind, _ numbers: [Double]) {
    self.init()
    self.kind = kind
    withUnsafeMutableBytes(of: &self.numbers) { bytes in
      for (index, number) in numbers.enumerated() {
        bytes.storeBytes(of: Float(number), toByteOffset: 4 * index, as: Float.self)
      }
    }
  }
}

@Suite("Color filters")
struct ColorFilterTests {
  private static let sepia = [0.393, 0.769, 0.189, -0.01, 0.349, 0.686, 0.168, 0.02, 0.272, 0.534, 0.131, 0]

  static let cases = [
    ColorStepCase("matrix", CPIXELS_COLOR_MATRIX, sepia) { color, _, _ in
      (0..<3).map { row in
        sepia[4 * row] * color[0] + sepia[4 * row + 1] * color[1] + sepia[4 * row + 2] * color[2] + sepia[4 * row + 3]
      }
    },
    ColorStepCase("linear", CPIXELS_COLOR_LINEAR, [1.7, -0.2]) { color, _, _ in color.map { 1.7 * $0 - 0.2 } },
    ColorStepCase("power", CPIXELS_COLOR_POWER, [1 / 2.2, 1.1, -0.02, 0.8]) { color, _, _ in
      color.map { 0.2 * $0 + 0.8 * (1.1 * pow($0, 1 / 2.2) - 0.02) }
    },
    ColorStepCase("high power", CPIXELS_COLOR_POWER, [9.5, 1, 0, 1]) { color, _, _ in color.map { pow($0, 9.5) } },
    ColorStepCase("low power", CPIXELS_COLOR_POWER, [0.1, 1, 0, 1]) { color, _, _ in color.map { pow($0, 0.1) } },
    ColorStepCase("exposure", CPIXELS_COLOR_EXPOSURE, [3, 0.9]) { color, _, _ in
      color.map { $0 + 0.9 * (encoded(3 * decoded($0)) - $0) }
    },
    ColorStepCase("dark exposure", CPIXELS_COLOR_EXPOSURE, [0.01, 1]) { color, _, _ in
      color.map { encoded(0.01 * decoded($0)) }
    },
    ColorStepCase("threshold", CPIXELS_COLOR_THRESHOLD, [0.2126, 0.7152, 0.0722, 0.503, 0.7]) { color, _, _ in
      let isWhite = 0.2126 * color[0] + 0.7152 * color[1] + 0.0722 * color[2] >= 0.503
      return color.map { 0.3 * $0 + (isWhite ? 0.7 : 0) }
    },
    ColorStepCase("vignette", CPIXELS_COLOR_VIGNETTE, [0.25, 0.6, 0.9]) { color, right, down in
      let t = min(1, max(0, ((right * right + down * down) / 2).squareRoot() - 0.25) / 0.6)
      return color.map { $0 * (1 - 0.9 * (3 * t * t - 2 * t * t * t)) }
    },
  ]

  private static func decoded(_ x: Double) -> Double { x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4) }
  private static func encoded(_ x: Double) -> Double { x <= 0.0031308 ? 12.92 * x : 1.055 * pow(x, 1 / 2.4) - 0.055 }

  @Test("matches the formula, rounded to nearest, with every instruction set", arguments: cases, [3, 4])
  func agreesWithFormula(test: ColorStepCase, channels: Int) {
    let (width, height, y) = (1000, 77, 12)
    let source = noise(width * channels)
    for isa in ResizerTests.instructionSets {
      let result = run([test.step], source, width: width, height: height, y: y, channels: channels, isa)
      var worst = 0.0
      for x in 0..<width {
        let color = (0..<3).map { Double(source[x * channels + $0]) / 255 }
        let right = Double(2 * x + 1 - width) / Double(width)
        let exact = test.exact(color, right, Double(2 * y + 1 - height) / Double(height))
        for channel in 0..<3 {
          worst = max(worst, abs(Double(result[x * channels + channel]) - 255 * min(1, max(0, exact[channel]))))
        }
        if channels == 4 { #expect(result[x * 4 + 3] == source[x * 4 + 3]) }
      }
      // Rounding accounts for half a level; the rest is the error of the arithmetic.
      #expect(worst < 0.51)
    }
  }

  @Test("returns the same samples with every instruction set, at every length", arguments: [3, 4])
  func instructionSetsAgree(channels: Int) {
    for width in Array(1...70) + [255, 256, 257, 511, 600] {
      let source = noise(width * channels)
      for first in Self.cases.indices {
        let steps = Self.cases[first...].prefix(3).map(\.step)
        let scalar = run(steps, source, width: width, channels: channels, CPIXELS_ISA_SCALAR)
        for isa in ResizerTests.instructionSets + [CPIXELS_ISA_BEST] {
          #expect(run(steps, source, width: width, channels: channels, isa) == scalar)
        }
      }
    }
  }

  @Test("an identity program changes no level", arguments: ResizerTests.instructionSets)
  func identity(isa: cpixels_isa) {
    let source = (0...255).flatMap { (level: UInt8) -> [UInt8] in [level, 255 - level, level, level ^ 0x55] }
    let unit = cpixels_color_step(CPIXELS_COLOR_MATRIX, [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0])
    #expect(run([], source, width: 256, channels: 4, isa) == source)
    #expect(run([unit], source, width: 256, channels: 4, isa) == source)
    #expect(run([unit], source, table: (0...255).map { Float($0) / 255 }, width: 256, channels: 4, isa) == source)
  }

  @Test("applies its table first, and reads and writes nothing beyond the row", arguments: ResizerTests.instructionSets)
  func table(isa: cpixels_isa) throws {
    let table = (0...255).map { Float(255 - $0) / 255 }
    for (width, channels) in [(1, 3), (31, 3), (33, 4), (300, 3)] {
      let source = noise(width * channels)
      let fenced = try FencedBytes(source)
      let result = run(
        [], Array(UnsafeRawBufferPointer(start: fenced.bytes, count: source.count)), table: table,
        width: width, channels: channels, isa, fenced: fenced)
      let expected = source.enumerated().map { $0.offset % channels == 3 ? $0.element : 255 - $0.element }
      #expect(result == expected)
    }
  }

  @Test("levels are replaced by their entries, except alpha", arguments: ResizerTests.instructionSets, [3, 4])
  func mapsLevels(isa: cpixels_isa, channels: Int) throws {
    let table = noise(256)
    for pixelCount in Array(0...80) + [1000] {
      let source = noise(pixelCount * channels)
      let fenced = try FencedBytes(source)
      var result = [UInt8](repeating: 7, count: source.count + 1)
      cpixels_map_levels(
        table, UInt32(channels), fenced.bytes.assumingMemoryBound(to: UInt8.self), &result, pixelCount, isa)
      let expected = source.enumerated().map { $0.offset % channels == 3 ? $0.element : table[Int($0.element)] }
      #expect(result == expected + [7])
    }
  }

  private func run(
    _ steps: [cpixels_color_step], _ source: [UInt8], table: [Float]? = nil, width: Int, height: Int = 9, y: Int = 4,
    channels: Int, _ isa: cpixels_isa, fenced: FencedBytes? = nil
  ) -> [UInt8] {
    // One byte more than may be written; it must stay unchanged.
    var result = [UInt8](repeating: 7, count: source.count + 1)
    (table ?? []).withUnsafeBufferPointer { table in
      steps.withUnsafeBufferPointer { steps in
        source.withUnsafeBufferPointer { source in
          var program = cpixels_color_program(
            table: table.isEmpty ? nil : table.baseAddress, steps: steps.baseAddress, step_count: UInt32(steps.count),
            width: UInt32(width), height: UInt32(height))
          let bytes = fenced?.bytes.assumingMemoryBound(to: UInt8.self) ?? source.baseAddress!
          cpixels_color_row(&program, UInt32(y), UInt32(channels), bytes, &result, isa)
        }
      }
    }
    #expect(result.last == 7)
    return result.dropLast()
  }
}
