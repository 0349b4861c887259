import CPixels
import Foundation
import Testing

@Suite("Thumbnails")
struct ThumbnailTests {
  private static let sets = [CPIXELS_ISA_SCALAR, CPIXELS_ISA_AVX2, CPIXELS_ISA_NEON, CPIXELS_ISA_BEST].filter {
    cpixels_isa_is_available($0)
  }

  private static func image(_ width: Int, _ height: Int, alpha: Bool) -> [UInt8] {
    var rgba: [UInt8] = []
    for y in 0..<height {
      for x in 0..<width {
        rgba += [x * 37, x * y * 11, y * 53 + x, alpha ? y * 29 : 255].map { UInt8($0 % 256) }
      }
    }
    return rgba
  }

  @Test("waves are cosines", arguments: [1, 2, 9, 52, 100])
  func cosines(length: Int) {
    for isCentered in [false, true] {
      var waves = [Double](repeating: 0, count: 9 * length)
      cpixels_cosines(length, 9, isCentered, &waves)
      for k in 0..<9 {
        for x in 0..<length {
          let expected = cos(Double.pi / Double(length) * Double(k) * (Double(x) + (isCentered ? 0.5 : 0)))
          #expect(abs(waves[k * length + x] - expected) < 1e-12)
        }
      }
    }
  }

  @Test("sums are those of the definition, the same with every instruction set", arguments: [false, true])
  func sums(alpha: Bool) {
    let (width, height, background, light) = (23, 17, [0.2, 0.5, 0.7], (0..<256).map { Double($0 * $0) / 65025 })
    let rgba = Self.image(width, height, alpha: alpha)
    var (across, down) = ([Double](repeating: 0, count: 9 * width), [Double](repeating: 0, count: 9 * height))
    cpixels_cosines(width, 9, true, &across)
    cpixels_cosines(height, 9, true, &down)
    for channel in 0..<7 as Range<UInt32> {
      func value(_ pixel: Int) -> Double {
        let (colors, alpha) = ((0..<3).map { Double(rgba[4 * pixel + $0]) / 255 }, Double(rgba[4 * pixel + 3]) / 255)
        let mixed = (0..<3).map { background[$0] * (1 - alpha) + alpha * colors[$0] }
        switch channel {
        case 0: return (mixed[0] + mixed[1] + mixed[2]) / 3
        case 1: return (mixed[0] + mixed[1]) / 2 - mixed[2]
        case 2: return mixed[0] - mixed[1]
        case 3: return alpha
        default: return light[Int(rgba[4 * pixel + Int(channel) - 4])]
        }
      }
      var results: [[Double]] = []
      for isa in Self.sets {
        var sums = [Double](repeating: 0, count: 5 * 4)
        cpixels_cosine_sums(
          rgba, width, height, cpixels_channel(channel), background, light, across, 5, down, 4, &sums, isa)
        results.append(sums)
      }
      #expect(results.allSatisfy { $0 == results[0] })
      for (index, sum) in results[0].enumerated() {
        let expected = (0..<width * height).reduce(0) { sum, pixel in
          sum + value(pixel) * across[index % 5 * width + pixel % width] * down[index / 5 * height + pixel / width]
        }
        #expect(abs(sum - expected) < 1e-9)
      }
    }
  }

  @Test("hashes are the same with every instruction set, and those of simple images are known")
  func hashes() {
    let rising = (0..<40 * 30).map { UInt8($0 % 40 * 6) }
    for isa in Self.sets {
      #expect(cpixels_difference_hash(rising, 40, 30, isa) == .max)
      #expect(cpixels_difference_hash(rising.map { 255 - $0 }, 40, 30, isa) == 0)
      #expect(cpixels_perceptual_hash([UInt8](repeating: 90, count: 1200), 40, 30, isa) == 1 << 63)
    }
    for (width, height) in [(1, 1), (100, 3), (32, 32), (9, 100)] {
      let gray = Self.image(width, height, alpha: false).enumerated().filter { $0.offset % 4 == 1 }.map(\.element)
      let all = Self.sets.map { cpixels_perceptual_hash(gray, width, height, $0) }
      #expect(Set(all).count == 1)
    }
  }

  @Test("dominant colors are those of clusters")
  func dominant() {
    let palette: [[UInt8]] = [[250, 250, 250], [20, 20, 20], [200, 30, 30]]
    let rgba = (0..<1000).flatMap { index -> [UInt8] in
      let color = palette[index < 500 ? 0 : index < 800 ? 1 : 2]
      return color.map { $0 + UInt8(index % 3) } + [255]
    }
    var colors = [cpixels_color_share](repeating: cpixels_color_share(), count: 6)
    #expect(cpixels_dominant_colors(rgba, 1000, &colors) == 3)
    #expect(colors.prefix(3).map(\.count) == [500, 300, 200])
    #expect(colors[0].color.0 == 251 && colors[1].color.0 == 21 && colors[2].color.0 == 201 && colors[2].color.1 == 31)
    let hidden = [UInt8](repeating: 100, count: 4000)
    #expect(cpixels_dominant_colors(hidden, 1000, &colors) == 0)
  }
}
