import CPixels
import Testing

@Suite("Color")
struct ColorTests {
  @Test("YCbCr becomes RGB within a level of the exact matrix", arguments: (0...17).map { $0 * 15 })
  func yccToRGB(y: Int) {
    let cr = stride(from: 0, through: 255, by: 5).map { UInt8($0) }
    let luma = [UInt8](repeating: UInt8(y), count: cr.count)
    for cb in stride(from: 0, through: 255, by: 15) {
      let blue = [UInt8](repeating: UInt8(cb), count: cr.count)
      let rgb = convert(luma, blue, cr, CPIXELS_ISA_SCALAR)
      let exact: [Double] = cr.flatMap { (red: UInt8) -> [Double] in
        let (b, r) = (Double(cb) - 128, Double(red) - 128)
        return [Double(y) + 1.402 * r, Double(y) - 0.344136 * b - 0.714136 * r, Double(y) + 1.772 * b]
      }
      // Rounded to nearest, except for the rounding of the coefficients.
      #expect(zip(rgb, exact).allSatisfy { abs(Double($0) - min(255, max(0, $1))) < 0.51 })
    }
  }

  @Test(
    "returns the same samples with every instruction set, at every length", arguments: [0, 1, 15, 16, 47, 300, 1000])
  func instructionSetsAgree(count: Int) {
    let samples = noise(count * 3)
    let planes = [samples.prefix(count), samples.dropFirst(count).prefix(count), samples.suffix(count)].map {
      Array($0)
    }
    for isa in ResizerTests.instructionSets {
      #expect(
        convert(planes[0], planes[1], planes[2], isa) == convert(planes[0], planes[1], planes[2], CPIXELS_ISA_SCALAR))
    }
  }

  @Test("gray becomes RGB of three equal samples", arguments: [0, 1, 31, 32, 33, 100])
  func grayToRGB(count: Int) {
    let gray = noise(count)
    var rgb = [UInt8](repeating: 7, count: count * 3 + 1)
    cpixels_gray_to_rgb(gray, &rgb, count)
    #expect(rgb == gray.flatMap { [$0, $0, $0] } + [7])
  }

  private func convert(_ y: [UInt8], _ cb: [UInt8], _ cr: [UInt8], _ isa: cpixels_isa) -> [UInt8] {
    // One element more than the function may write; it must stay unchanged.
    var rgb = [UInt8](repeating: 7, count: y.count * 3 + 1)
    cpixels_ycc_to_rgb(y, cb, cr, &rgb, y.count, isa)
    #expect(rgb.last == 7)
    return rgb.dropLast()
  }
}
