import CPixels
import Testing

@Suite("Alpha and colour")
struct ColorTests {
  static let instructionSets = [CPIXELS_ISA_SCALAR, CPIXELS_ISA_BEST]

  @Test("premultiplying is exact and can be undone", arguments: [0, 1])
  func premultiplyRoundTrip(set: Int) {
    let isa = Self.instructionSets[set]
    for alpha in 0...255 {
      let levels = Array(stride(from: 0, through: 255, by: 5))
      let pixels: [UInt8] = levels.flatMap { (level: Int) -> [UInt8] in
        [UInt8(level), UInt8(255 - level), 77, UInt8(alpha)]
      }
      var premultiplied = [UInt16](repeating: 0, count: pixels.count)
      var back = [UInt8](repeating: 0, count: pixels.count)
      cpixels_premultiply(pixels, &premultiplied, pixels.count / 4, isa)
      for (index, value) in premultiplied.enumerated() {
        #expect(Int(value) == Int(index % 4 == 3 ? 255 : pixels[index]) * alpha)
      }
      cpixels_unpremultiply(premultiplied, &back, pixels.count / 4, isa)
      #expect(back == (alpha == 0 ? [UInt8](repeating: 0, count: pixels.count) : pixels))
    }
  }

  @Test("flattening mixes colour and background by alpha", arguments: [0, 1])
  func flatten(set: Int) {
    let background: [UInt8] = [10, 128, 255]
    for alpha in 0...255 {
      let color: [UInt8] = [200, 0, 99]
      var premultiplied = [UInt16](repeating: 0, count: 4)
      var rgb = [UInt8](repeating: 0, count: 3)
      cpixels_premultiply(color + [UInt8(alpha)], &premultiplied, 1, Self.instructionSets[set])
      cpixels_flatten(premultiplied, background, &rgb, 1, Self.instructionSets[set])
      for channel in 0..<3 {
        let share = Double(alpha) / 255
        let expected = Double(color[channel]) * share + Double(background[channel]) * (1 - share)
        #expect(abs(Double(rgb[channel]) - expected) <= 0.5001)
      }
    }
  }

  @Test("a colour that a filter made larger than its alpha is clamped")
  func overshoot() {
    var rgba = [UInt8](repeating: 9, count: 4)
    cpixels_unpremultiply([65025, 200, 0, 100], &rgba, 1, CPIXELS_ISA_BEST)
    #expect(rgba == [0, 0, 0, 0])
    cpixels_unpremultiply([65025, 40000, 0, 32640], &rgba, 1, CPIXELS_ISA_BEST)
    #expect(rgba == [255, 255, 0, 128])
  }

  @Test("YCbCr becomes RGB within a level of the exact matrix", arguments: [0, 1])
  func yccToRGB(set: Int) {
    for y in stride(from: 0, through: 255, by: 15) {
      for cb in stride(from: 0, through: 255, by: 15) {
        let cr = stride(from: 0, through: 255, by: 5).map { UInt8($0) }
        let luma = [UInt8](repeating: UInt8(y), count: cr.count)
        let blue = [UInt8](repeating: UInt8(cb), count: cr.count)
        var rgb = [UInt8](repeating: 0, count: cr.count * 3)
        cpixels_ycc_to_rgb(luma, blue, cr, &rgb, cr.count, Self.instructionSets[set])
        for (index, red) in cr.enumerated() {
          let (b, r) = (Double(cb) - 128, Double(red) - 128)
          let exact = [
            Double(y) + 1.402 * r, Double(y) - 0.344136 * b - 0.714136 * r, Double(y) + 1.772 * b,
          ]
          for channel in 0..<3 {
            #expect(abs(Double(rgb[index * 3 + channel]) - min(255, max(0, exact[channel]))) < 1)
          }
        }
      }
    }
  }
}
