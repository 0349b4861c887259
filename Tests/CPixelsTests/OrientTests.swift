import CPixels
import Testing

@Suite("Orientation")
struct OrientTests {
  @Test("places every pixel where EXIF says", arguments: 1...8, [1, 3, 4, 8])
  func placesPixels(orientation: Int, pixelSize: Int) {
    let (width, height) = (37, 21)
    let stored = (0..<width * height * pixelSize).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    for portion in [1, 5, height] {
      let upright = orient(stored, width, height, pixelSize, orientation, portion)
      let (shownWidth, shownHeight) = orientation >= 5 ? (height, width) : (width, height)
      for y in 0..<shownHeight {
        for x in 0..<shownWidth {
          let (sx, sy) = source(x, y, width, height, orientation)
          let (to, from) = ((y * shownWidth + x) * pixelSize, (sy * width + sx) * pixelSize)
          #expect(upright[to..<to + pixelSize] == stored[from..<from + pixelSize])
        }
      }
    }
  }

  /// The stored place of the pixel that is shown at (x, y).
  private func source(_ x: Int, _ y: Int, _ width: Int, _ height: Int, _ orientation: Int) -> (Int, Int) {
    switch orientation {
    case 2: (width - 1 - x, y)
    case 3: (width - 1 - x, height - 1 - y)
    case 4: (x, height - 1 - y)
    case 5: (y, x)
    case 6: (y, height - 1 - x)
    case 7: (width - 1 - y, height - 1 - x)
    case 8: (width - 1 - y, x)
    default: (x, y)
    }
  }

  private func orient(
    _ stored: [UInt8], _ width: Int, _ height: Int, _ pixelSize: Int, _ orientation: Int, _ portion: Int
  ) -> [UInt8] {
    var upright = [UInt8](repeating: 0, count: stored.count)
    let stride = (orientation >= 5 ? height : width) * pixelSize
    for first in Swift.stride(from: 0, to: height, by: portion) {
      let count = min(portion, height - first)
      stored.withUnsafeBufferPointer { rows in
        cpixels_orient_rows(
          rows.baseAddress! + first * width * pixelSize, width * pixelSize, UInt32(first), UInt32(count),
          UInt32(width), UInt32(height), UInt8(pixelSize), UInt8(orientation), &upright, stride)
      }
    }
    return upright
  }
}
