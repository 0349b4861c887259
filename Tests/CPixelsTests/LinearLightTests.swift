import CPixels
import Foundation
import Testing

/// `Tests/EndToEnd/test_linear_light.py` compares with Pillow.
@Suite("Resizer in linear light")
struct LinearLightTests {
  static let cases: [ResizeCase] = [
    ResizeCase((64, 48), (32, 24), light: .color), ResizeCase((61, 47), (17, 13), channels: 3, light: .color),
    ResizeCase((61, 47), (17, 13), channels: 4, light: .color),
    ResizeCase((61, 47), (17, 13), channels: 4, light: .colorAndAlpha),
    ResizeCase((200, 150), (96, 72), channels: 3, light: .color),
    ResizeCase((200, 150), (96, 72), channels: 4, light: .colorAndAlpha),
    ResizeCase((13, 9), (40, 31), channels: 3, light: .color),
    ResizeCase((13, 9), (40, 31), channels: 4, light: .colorAndAlpha), ResizeCase((1, 1), (5, 3), light: .color),
    ResizeCase((50, 40), (1, 1), channels: 3, light: .color), ResizeCase((300, 2), (3, 2), light: .color),
    ResizeCase((40, 30), (40, 15), channels: 3, light: .color),
    ResizeCase((40, 30), (20, 30), channels: 4, light: .colorAndAlpha),
    ResizeCase((101, 75), (50, 37), channels: 3, scale: 0.99, offset: 0.25, light: .color),
    ResizeCase((700, 50), (100, 7), channels: 4, light: .colorAndAlpha),
    ResizeCase((661, 20), (80, 3), channels: 3, light: .color),
    ResizeCase((61, 47), (170, 130), channels: 3, kernel: CPIXELS_KERNEL_MITCHELL, light: .color),
    ResizeCase((200, 150), (96, 72), channels: 3, kernel: CPIXELS_KERNEL_CUBIC, light: .color),
    ResizeCase((201, 150), (67, 50), channels: 3, kernel: CPIXELS_KERNEL_MEAN, light: .color),
    ResizeCase((90, 40), (31, 17), channels: 3, kernel: CPIXELS_KERNEL_TRIANGLE, light: .color),
    ResizeCase((90, 40), (31, 17), channels: 3, kernel: CPIXELS_KERNEL_LANCZOS2, light: .color),
  ]

  private static func light(_ signal: Double) -> Double {
    signal <= 0.04045 ? signal / 12.92 : pow((signal + 0.055) / 1.055, 2.4)
  }

  private static func signal(_ light: Double) -> Double {
    let light = min(1, max(0, light))
    return light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055
  }

  /// Returns samples from 0 to 1, before they are rounded to `levels`.
  private func expected(_ test: ResizeCase, _ source: [Double], levels: Double) -> [Double] {
    let isStraight = test.light == .colorAndAlpha
    var lit = source.map(Self.light)
    for pixel in stride(from: 0, to: isStraight ? lit.count : 0, by: 4) {
      for c in 0..<3 { lit[pixel + c] *= source[pixel + 3] }
      lit[pixel + 3] = source[pixel + 3]
    }
    var resized = ResizeReference(test).resize(lit)
    guard isStraight else { return resized.map(Self.signal) }
    for pixel in stride(from: 0, to: resized.count, by: 4) {
      let alpha = min(1, max(0, resized[pixel + 3]))
      let isClear = alpha * levels < 0.5
      for c in 0..<3 { resized[pixel + c] = isClear ? 0 : Self.signal(resized[pixel + c] / alpha) }
      resized[pixel + 3] = alpha
    }
    return resized
  }

  @Test("has the samples of the reference", arguments: cases)
  func agreesWithReference(test: ResizeCase) {
    let source = noise(test.sourceSampleCount)
    let wide = source.enumerated().map { UInt16($1) * 257 ^ UInt16(truncatingIfNeeded: $0) }
    let expected8 = expected(test, source.map { Double($0) / 255 }, levels: 255)
    let expected16 = expected(test, wide.map { Double($0) / 65535 }, levels: 65535)
    let errors8 = zip(test.resize(source, isa: CPIXELS_ISA_BEST), expected8).map { abs(Double($0) - 255 * $1) }
    let errors16 = zip(test.resize(wide, isa: CPIXELS_ISA_BEST), expected16).map { abs(Double($0) - 65535 * $1) }
    // Tables are interpolated: two of 65535. Dividing by a small alpha amplifies errors.
    #expect(errors8.max()! < 0.52)
    #expect(errors16.max()! < (test.light == .color ? 3 : 20))
  }

  @Test("returns the same samples with every instruction set, however rows are pushed and read", arguments: cases)
  func instructionSetsAgree(test: ResizeCase) {
    let source = noise(test.sourceSampleCount)
    let wide = source.enumerated().map { UInt16($1) * 257 ^ UInt16(truncatingIfNeeded: $0) }
    let scalar = test.resize(source, isa: CPIXELS_ISA_SCALAR)
    let wideScalar = test.resize(wide, isa: CPIXELS_ISA_SCALAR)
    for isa in ResizerTests.instructionSets {
      for portions in [(1, 1), (7, 3), (400, 400)] {
        let portions = ResizePortions(pushed: portions.0, read: portions.1)
        #expect(test.resize(source, isa: isa, portions) == scalar)
        #expect(test.resize(wide, isa: isa, portions) == wideScalar)
      }
    }
  }

  @Test("keeps every level of a constant image", arguments: [1, 3, 4])
  func constant(channels: Int) {
    for value in UInt8.min...UInt8.max {
      let test = ResizeCase((31, 9), (7, 5), channels: channels, light: .color)
      let source = [UInt8](repeating: value, count: test.sourceSampleCount)
      let wide = source.map { UInt16($0) * 256 + 77 }
      for isa in ResizerTests.instructionSets {
        #expect(test.resize(source, isa: isa).allSatisfy { $0 == value })
        #expect(test.resize(wide, isa: isa).allSatisfy { abs(Int($0) - Int(wide[0])) <= 2 })
      }
    }
  }

  @Test("keeps color at every alpha", arguments: [1, 2, 17, 128, 254, 255] as [UInt8])
  func constantAlpha(alpha: UInt8) {
    let test = ResizeCase((31, 9), (7, 5), channels: 4, light: .colorAndAlpha)
    let pixel: [UInt8] = [3, 100, 255, alpha]
    let source = (0..<test.sourceSampleCount).map { pixel[$0 % 4] }
    let result = test.resize(source, isa: CPIXELS_ISA_BEST)
    #expect(result.indices.allSatisfy { result[$0] == pixel[$0 % 4] })
  }

  @Test("gives no color of transparent pixels to others")
  func transparentColor() {
    let test = ResizeCase((40, 8), (10, 2), channels: 4, light: .colorAndAlpha)
    let (clear, blue): ([UInt8], [UInt8]) = ([255, 0, 0, 0], [0, 0, 200, 255])
    let source = (0..<40 * 8).flatMap { (index: Int) -> [UInt8] in index % 3 == 0 ? clear : blue }
    let result = test.resize(source, isa: CPIXELS_ISA_BEST)
    for pixel in stride(from: 0, to: result.count, by: 4) {
      #expect(Array(result[pixel..<pixel + 3]) == [0, 0, 200])
      #expect(result[pixel + 3] < 255)
    }
  }

  @Test("turns a checkerboard of black and white into half of the light")
  func checkerboard() {
    let test = ResizeCase((64, 64), (16, 16), kernel: CPIXELS_KERNEL_MEAN, light: .color)
    let source = (0..<64 * 64).map { (index: Int) -> UInt8 in
      let (x, y) = (index % 64, index / 64)
      return (x + y) % 2 == 0 ? 0 : 255
    }
    #expect(test.resize(source, isa: CPIXELS_ISA_BEST).allSatisfy { $0 == 188 })
  }

  @Test("reads nothing beyond the supplied rows", arguments: cases)
  func staysInsideRows(test: ResizeCase) throws {
    let row = Array(noise(test.sourceSampleCount).prefix(test.sourceRowSampleCount))
    let fenced = try FencedBytes(row)
    for isa in ResizerTests.instructionSets {
      let driver = ResizeDriver(test, sampleSize: 1, isa: isa)
      #expect(cpixels_resizer_push(driver.resizer, fenced.bytes, row.count, 1) == 1)
      #expect(cpixels_resizer_push(driver.resizer, fenced.bytes, row.count, 1) == 1)
    }
  }

  @Test("refuses alpha without four channels or without light")
  func refusals() {
    var byteCount = 0
    var options = ResizeCase((9, 9), (5, 5), channels: 3, light: .colorAndAlpha).options(
      CPIXELS_SAMPLE_U8, CPIXELS_ISA_BEST)
    #expect(!cpixels_resizer_measure(&options, &byteCount))
    options.channels = 4
    #expect(cpixels_resizer_measure(&options, &byteCount))
    options.in_linear_light = false
    #expect(!cpixels_resizer_measure(&options, &byteCount))
  }
}
