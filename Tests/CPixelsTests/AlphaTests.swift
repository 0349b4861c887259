import CPixels
import Testing

@Suite("Alpha")
struct AlphaTests {
  @Test("premultiplying is exact and reversible", arguments: ResizerTests.instructionSets)
  func premultiplyRoundTrip(isa: cpixels_isa) {
    let levels = Array(stride(from: 0, through: 255, by: 5))
    for alpha in 0...255 {
      let pixels: [UInt8] = levels.flatMap { (level: Int) -> [UInt8] in
        [UInt8(level), UInt8(255 - level), 77, UInt8(alpha)]
      }
      var premultiplied = [UInt16](repeating: 0, count: pixels.count)
      var back = [UInt8](repeating: 0, count: pixels.count)
      cpixels_premultiply(pixels, &premultiplied, levels.count, isa)
      let expected = pixels.enumerated().map { UInt16($0.offset % 4 == 3 ? 255 : Int($0.element)) * UInt16(alpha) }
      #expect(premultiplied == expected)
      cpixels_unpremultiply(premultiplied, &back, levels.count, isa)
      #expect(back == (alpha == 0 ? [UInt8](repeating: 0, count: pixels.count) : pixels))
    }
  }

  @Test("dividing by alpha rounds to nearest", arguments: ResizerTests.instructionSets)
  func unpremultiplyRounds(isa: cpixels_isa) {
    for alpha in stride(from: 128, through: 65025, by: 61) {
      let premultiplied: [UInt16] = (0..<64).flatMap { (part: Int) -> [UInt16] in
        [UInt16(part * alpha / 64), UInt16(alpha / 3), UInt16(alpha), UInt16(alpha)]
      }
      var rgba = [UInt8](repeating: 0, count: 256)
      cpixels_unpremultiply(premultiplied, &rgba, 64, isa)
      let errors = zip(rgba, premultiplied).enumerated().map { index, values in
        abs(Double(values.0) - Double(values.1) * 255 / Double(index % 4 == 3 ? 65025 : alpha))
      }
      #expect(errors.allSatisfy { $0 <= 0.5 + 1e-9 })
    }
  }

  @Test("flattening mixes color and background by alpha", arguments: ResizerTests.instructionSets)
  func flatten(isa: cpixels_isa) {
    let background: [UInt8] = [10, 128, 255]
    let rgba: [UInt8] = (0...255).flatMap { (alpha: Int) -> [UInt8] in [200, 0, 99, UInt8(alpha)] }
    var premultiplied = [UInt16](repeating: 0, count: rgba.count)
    var rgb = [UInt8](repeating: 0, count: 256 * 3)
    cpixels_premultiply(rgba, &premultiplied, 256, isa)
    cpixels_flatten(premultiplied, background, &rgb, 256, isa)
    for alpha in 0...255 {
      for channel in 0..<3 {
        let share = Double(alpha) / 255
        let expected = Double(rgba[channel]) * share + Double(background[channel]) * (1 - share)
        #expect(abs(Double(rgb[alpha * 3 + channel]) - expected) <= 0.5 + 1e-9)
      }
    }
  }

  @Test("a color that a filter raised above its alpha is clamped", arguments: ResizerTests.instructionSets)
  func overshoot(isa: cpixels_isa) {
    let premultiplied: [UInt16] = [
      65025, 200, 0, 100, 65025, 40000, 0, 32640, 65535, 65535, 65535, 65535, 0, 1, 2, 0,
    ]
    var rgba = [UInt8](repeating: 9, count: 16)
    cpixels_unpremultiply(premultiplied, &rgba, 4, isa)
    #expect(rgba == [0, 0, 0, 0, 255, 255, 0, 128, 255, 255, 255, 255, 0, 0, 0, 0])
  }

  @Test("returns the same samples with every instruction set, at every length", arguments: 0...40)
  func instructionSetsAgree(count: Int) {
    let rgba = noise(count * 4)
    let mixed = zip(noise(count * 8), noise(count * 8).reversed()).map { UInt16($0) << 8 | UInt16($1) }
    func run(_ isa: cpixels_isa) -> ([UInt16], [UInt8], [UInt8]) {
      // One element more than the functions may write; it must stay unchanged.
      var premultiplied = [UInt16](repeating: 7, count: count * 4 + 1)
      var straight = [UInt8](repeating: 7, count: count * 4 + 1)
      var rgb = [UInt8](repeating: 7, count: count * 3 + 1)
      cpixels_premultiply(rgba, &premultiplied, count, isa)
      cpixels_unpremultiply(mixed, &straight, count, isa)
      cpixels_flatten(mixed, [1, 100, 200], &rgb, count, isa)
      #expect(premultiplied.last == 7 && straight.last == 7 && rgb.last == 7)
      return (premultiplied, straight, rgb)
    }
    for isa in ResizerTests.instructionSets {
      #expect(run(isa) == run(CPIXELS_ISA_SCALAR))
    }
  }
}
