import CPixels
import Testing

@Suite("Orientation")
struct OrientTests {
  @Test("places every pixel where EXIF specifies", arguments: 1...8, [1, 3, 4, 8])
  func placesPixels(orientation: Int, pixelSize: Int) {
    let stored = Image(width: 37, height: 21, pixelSize: pixelSize)
    for portion in [1, 5, stored.height] {
      let upright = stored.oriented(orientation, portion: portion)
      for y in 0..<upright.height {
        for x in 0..<upright.width {
          let (sx, sy) = source(x, y, stored.width, stored.height, orientation)
          #expect(upright.pixel(x, y) == stored.pixel(sx, sy))
        }
      }
    }
  }

  @Test("is undone by the inverse", arguments: [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 8), (7, 7), (8, 6)])
  func inverse(orientation: Int, inverse: Int) {
    let stored = Image(width: 50, height: 33, pixelSize: 3)
    #expect(stored.oriented(orientation).oriented(inverse) == stored)
  }

  @Test(
    "composes like rotations and mirrors",
    arguments: [
      [6, 6, 3], [8, 8, 3], [2, 4, 3], [6, 2, 5], [5, 2, 6], [5, 4, 8], [6, 4, 7], [3, 6, 8], [5, 7, 3],
    ])
  func composition(steps: [Int]) {
    let stored = Image(width: 19, height: 40, pixelSize: 4)
    #expect(stored.oriented(steps[0]).oriented(steps[1]) == stored.oriented(steps[2]))
  }

  @Test("accepts rows whose stride exceeds their length", arguments: 1...8)
  func paddedRows(orientation: Int) {
    let stored = Image(width: 20, height: 17, pixelSize: 1)
    #expect(stored.oriented(orientation, padding: 9) == stored.oriented(orientation))
  }

  /// Returns the stored position of the pixel that is shown at (x, y).
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
}

private struct Image: Equatable {
  let width: Int
  let height: Int
  let pixelSize: Int
  var bytes: [UInt8]

  init(width: Int, height: Int, pixelSize: Int) {
    self.width = width
    self.height = height
    self.pixelSize = pixelSize
    bytes = noise(width * height * pixelSize)
  }

  func pixel(_ x: Int, _ y: Int) -> ArraySlice<UInt8> {
    bytes[(y * width + x) * pixelSize..<(y * width + x + 1) * pixelSize]
  }

  /// Returns the image oriented `portion` rows at a time, with `padding` bytes between the source rows.
  func oriented(_ orientation: Int, portion: Int = 16, padding: Int = 0) -> Image {
    let isTurned = orientation >= 5
    var upright = Image(width: isTurned ? height : width, height: isTurned ? width : height, pixelSize: pixelSize)
    let rowByteCount = width * pixelSize
    let rows = (0..<height).flatMap {
      bytes[$0 * rowByteCount..<($0 + 1) * rowByteCount] + [UInt8](repeating: 0, count: padding)
    }
    for first in stride(from: 0, to: height, by: portion) {
      rows.withUnsafeBufferPointer {
        cpixels_orient_rows(
          $0.baseAddress! + first * (rowByteCount + padding), rowByteCount + padding, UInt32(first),
          UInt32(min(portion, height - first)), UInt32(width), UInt32(height), UInt8(pixelSize), UInt8(orientation),
          &upright.bytes, upright.width * pixelSize)
      }
    }
    return upright
  }
}
