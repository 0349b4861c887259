import CPixels
import Testing

@Suite("Overlay kernels")
struct OverlayTests {
  static let blends = [CPIXELS_BLEND_OVER, CPIXELS_BLEND_MULTIPLY, CPIXELS_BLEND_SCREEN]

  /// Returns the exact color and alpha, 0 to 1: W3C Compositing and Blending Level 1.
  static func reference(_ blend: cpixels_blend, over: [UInt8], under: [UInt8]) -> [Double] {
    let (over, under) = (over.map { Double($0) / 255 }, under.map { Double($0) / 255 })
    let (top, bottom) = (over[3], under.count == 4 ? under[3] : 1)
    let alpha = top + bottom * (1 - top)
    let colors = (0..<3).map { channel -> Double in
      let (source, backdrop) = (over[channel], under[channel])
      let mixed =
        switch blend {
        case CPIXELS_BLEND_MULTIPLY: source * backdrop
        case CPIXELS_BLEND_SCREEN: source + backdrop - source * backdrop
        default: source
        }
      let sum = top * (1 - bottom) * source + top * bottom * mixed + (1 - top) * bottom * backdrop
      return alpha == 0 ? 0 : sum / alpha
    }
    return under.count == 4 ? colors + [alpha] : colors
  }

  @Test("draw the exact value, rounded to nearest", arguments: ResizerTests.instructionSets, [3, 4])
  func exactness(isa: cpixels_isa, channels: Int) {
    for (index, blend) in Self.blends.enumerated() {
      let count = 4096
      var (over, row) = (noise(count * 4), Array(noise(count * channels + index).dropFirst(index)))
      // Alphas at the ends are common.
      for pixel in stride(from: 0, to: count, by: 5) { over[pixel * 4 + 3] = pixel % 2 == 0 ? 0 : 255 }
      if channels == 4 {
        for pixel in stride(from: 0, to: count, by: 7) { row[pixel * 4 + 3] = pixel % 2 == 0 ? 0 : 255 }
      }
      let before = row
      cpixels_overlay(blend, over, &row, UInt32(channels), count, isa)
      for pixel in 0..<count {
        let expected = Self.reference(
          blend, over: Array(over[pixel * 4..<pixel * 4 + 4]),
          under: Array(before[pixel * channels..<(pixel + 1) * channels]))
        for channel in 0..<channels {
          let difference = abs(Double(row[pixel * channels + channel]) - expected[channel] * 255)
          #expect(difference <= 0.5 + 1e-9, "blend \(blend), pixel \(pixel), channel \(channel)")
          if difference > 0.51 { return }
        }
      }
    }
  }

  @Test("return the same samples with every instruction set, at every length", arguments: 0...40, [3, 4])
  func instructionSetsAgree(count: Int, channels: Int) {
    let over = noise(count * 4)
    for blend in Self.blends {
      // One element more than the function may write; it must stay unchanged.
      let row = noise(count * channels) + [7]
      func run(_ isa: cpixels_isa) -> [UInt8] {
        var drawn = row
        cpixels_overlay(blend, over, &drawn, UInt32(channels), count, isa)
        return drawn
      }
      let expected = run(CPIXELS_ISA_SCALAR)
      #expect(expected.last == 7)
      for isa in ResizerTests.instructionSets { #expect(run(isa) == expected) }
    }
  }

  @Test("packed pixels have their alpha multiplied by the opacity")
  func packing() {
    var rgba = [UInt8](repeating: 9, count: 8)
    cpixels_overlay_pack([10, 200], 1, 65025, &rgba, 2)
    #expect(rgba == [10, 10, 10, 255, 200, 200, 200, 255])
    cpixels_overlay_pack([1, 2, 3, 4, 5, 6], 3, 32512, &rgba, 2)
    #expect(rgba == [1, 2, 3, 127, 4, 5, 6, 127])
    cpixels_overlay_pack([1, 2, 3, 100, 5, 6, 7, 255], 4, 6503, &rgba, 2)
    #expect(rgba == [1, 2, 3, 10, 5, 6, 7, 26])
  }
}

@Suite("Overlays on planes")
struct OverlayPlaneTests {
  /// Red, green and blue of each channel, and the value of black: JFIF 1.02.
  private static let channels: [(factors: [Double], offset: Double)] = [
    ([0.299, 0.587, 0.114], 0), ([-0.168736, -0.331264, 0.5], 128), ([0.5, -0.418688, -0.081312], 128),
  ]

  struct Case: Sendable {
    var left: Int
    var top: Int
    var across: Int
    var down: Int
  }

  static let cases = [(1, 1), (2, 1), (2, 2)].flatMap { (across, down) in
    [(0, 0), (3, 2), (-3, -4), (-2, 1), (7, 9), (12, 0), (40, 2), (-20, 0), (0, 60)].map {
      Case(left: $0.0, top: $0.1, across: across, down: down)
    }
  }

  @Test("are the means of converted pixels, within a level", arguments: cases)
  func mean(_ place: Case) {
    // Odd sizes, so that samples at the edges stand for fewer pixels.
    let (width, height, imageWidth, imageHeight) = (11, 7, 19, 15)
    var over = noise(width * height * 4)
    for pixel in stride(from: 0, to: width * height, by: 3) { over[pixel * 4 + 3] = pixel % 2 == 0 ? 0 : 255 }
    let (columns, rows) = ((imageWidth + place.across - 1) / place.across, (imageHeight + place.down - 1) / place.down)
    for channel in 0..<3 {
      let below = noise(columns * rows)
      for row in 0..<rows {
        // One element more than the function may write; it must stay unchanged.
        var drawn = Array(below[row * columns..<(row + 1) * columns]) + [7]
        var handle = cpixels_overlay_place(
          width: UInt32(width), height: UInt32(height), left: Int64(place.left), top: Int64(place.top),
          image_width: UInt32(imageWidth), image_height: UInt32(imageHeight), channel: UInt8(channel),
          across: UInt8(place.across), down: UInt8(place.down))
        cpixels_overlay_plane(over, &handle, UInt32(row), &drawn)
        #expect(drawn[columns] == 7)
        for column in 0..<columns {
          var (sum, count) = (0.0, 0.0)
          for y in row * place.down..<min((row + 1) * place.down, imageHeight) {
            for x in column * place.across..<min((column + 1) * place.across, imageWidth) {
              count += 1
              let value = Double(below[row * columns + column])
              guard (0..<width).contains(x - place.left), (0..<height).contains(y - place.top) else {
                sum += value
                continue
              }
              let pixel = Array(
                over[
                  ((y - place.top) * width + x - place.left) * 4..<((y - place.top) * width + x - place.left) * 4 + 4])
              let (factors, offset) = Self.channels[channel]
              let converted = zip(factors, pixel).reduce(offset) { $0 + $1.0 * Double($1.1) }
              let alpha = Double(pixel[3]) / 255
              sum += converted * alpha + value * (1 - alpha)
            }
          }
          let difference = abs(Double(drawn[column]) - min(255, sum / count))
          #expect(difference <= 0.53, "channel \(channel), \(column), \(row)")
        }
      }
    }
  }
}
