import CPixels
import Testing

@Suite("Cells")
struct CellsTests {
  private static let sets = [CPIXELS_ISA_SCALAR, CPIXELS_ISA_AVX2, CPIXELS_ISA_NEON, CPIXELS_ISA_BEST].filter {
    cpixels_isa_is_available($0)
  }

  private static func noise(_ count: Int, seed: UInt64) -> [UInt8] {
    var state = seed
    return (0..<count).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
  }

  @Test("sums of rows are those of their samples", arguments: [(1, 1), (63, 5), (64, 300), (200, 17), (1000, 257)])
  func sums(width: Int, rowCount: Int) {
    let stride = width + 3
    let rows = Self.noise(stride * rowCount, seed: UInt64(width))
    let expected = (0..<width).map { x in (0..<rowCount).reduce(UInt32(7)) { $0 + UInt32(rows[$1 * stride + x]) } }
    for isa in Self.sets {
      var sums = [UInt32](repeating: 7, count: width)
      cpixels_add_rows(rows, stride, rowCount, &sums, width, isa)
      #expect(sums == expected)
    }
  }

  @Test("cells are rounded means", arguments: [1, 3, 4])
  func cells(channelCount: Int) {
    let (width, first, side, rowCount) = (101, 5, 14, 14)
    let sums = Self.noise(width * channelCount, seed: 3).map { UInt32($0) * UInt32(rowCount) }
    var starts = [0]
    while let last = starts.last, last < width { starts.append(min(last == 0 ? first : last + side, width)) }
    let expected = zip(starts, starts.dropFirst()).flatMap { start, end in
      (0..<channelCount).map { channel in
        let sum = (start..<end).reduce(0) { $0 + Int(sums[$1 * channelCount + channel]) }
        return Double(sum) / Double((end - start) * rowCount)
      }
    }
    var (left, cells) = (sums, [UInt8](repeating: 0, count: expected.count))
    cpixels_take_cells(&left, width, UInt32(channelCount), first, side, rowCount, &cells)
    #expect(zip(cells, expected).allSatisfy { abs(Double($0) - $1) <= 0.5 + 1e-3 })
    #expect(left.allSatisfy { $0 == 0 })
  }

  @Test("alpha is multiplied and divided as in Pillow")
  func alpha() {
    let rgba = Self.noise(4 * 1000, seed: 9)
    var (multiplied, divided) = (rgba, rgba)
    cpixels_premultiply_8bit(rgba, &multiplied, 1000)
    cpixels_unpremultiply_8bit(multiplied, &divided, 1000)
    for pixel in stride(from: 0, to: rgba.count, by: 4) {
      let alpha = Int(rgba[pixel + 3])
      for channel in pixel..<pixel + 3 {
        #expect(Int(multiplied[channel]) == (2 * Int(rgba[channel]) * alpha + 255) / 510)
        let color = alpha == 0 ? Int(multiplied[channel]) : min(255, 255 * Int(multiplied[channel]) / alpha)
        #expect(Int(divided[channel]) == color)
      }
      #expect(multiplied[pixel + 3] == rgba[pixel + 3] && divided[pixel + 3] == rgba[pixel + 3])
    }
  }

  @Test("traits of rows are those of their pixels")
  func traits() {
    var gray = (0..<50).flatMap { [UInt8]([$0, $0 + 6, $0 + 3]) }
    #expect(cpixels_are_gray(gray, 3, 50, 6))
    gray[100] += 4
    #expect(!cpixels_are_gray(gray, 3, 50, 6))
    #expect(cpixels_are_gray([255, 0, 0, 0, 9, 9, 9, 255], 4, 2, 6))
    #expect(cpixels_are_neutral([126, 130, 128], 3, 2) && !cpixels_are_neutral([128, 131], 2, 2))
    #expect(cpixels_are_opaque([0, 0, 0, 255, 1, 1, 1, 255], 2) && !cpixels_are_opaque([0, 0, 0, 254], 1))
  }

  @Test("steps of all sizes are counted", arguments: [1, 2, 255, 256, 257, 2000])
  func steps(width: Int) {
    let row = Self.noise(width, seed: 4).map { $0 % 24 }
    var tally = cpixels_luma_tally()
    cpixels_tally_luma(row, width, &tally)
    let steps = zip(row, row.dropFirst()).map { abs(Int($0) - Int($1)) }
    #expect(Int(tally.step_count) == steps.count)
    #expect(Int(tally.flat_count) == steps.count { $0 == 0 })
    #expect(Int(tally.small_count) == steps.count { $0 > 0 && $0 <= 8 })
    #expect(Int(tally.levels.7) == row.count { $0 == 7 })
  }
}
