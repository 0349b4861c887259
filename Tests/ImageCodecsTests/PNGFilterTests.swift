import TestSupport
import Testing

@Suite("PNG filters")
struct PNGFilterTests {
  /// Color types and bit depths with pixels of 1, 2, 3, 4, 6 and 8 bytes.
  static let kinds: [(colorType: UInt8, bitDepth: UInt8, pixelByteCount: Int)] = [
    (0, 8, 1), (0, 16, 2), (4, 8, 2), (2, 8, 3), (6, 8, 4), (2, 16, 6), (6, 16, 8),
  ]

  @Test(
    "over several rows are reversed like those of one", arguments: kinds,
    [[4], [3], [4, 3], [0, 1, 2, 3, 4], [1, 2], [4, 4, 4, 0], [2, 4, 1, 4, 4]])
  func severalRows(kind: (colorType: UInt8, bitDepth: UInt8, pixelByteCount: Int), filters: [UInt8]) throws {
    var random = SeededGenerator(seed: 92)
    for (width, height) in [(1, 9), (2, 4), (5, 8), (6, 3), (7, 21), (13, 6), (40, 13), (101, 14), (11, 40), (37, 61)] {
      // Similar bytes trigger the ties of the Paeth filter, other bytes its wrap-around.
      let largest: UInt8 = Bool.random(using: &random) ? 3 : 255
      let rows = (0..<height).map { row in
        [filters[row % filters.count]]
          + (0..<width * kind.pixelByteCount).map { _ in UInt8.random(in: 0...largest, using: &random) }
      }
      func image(_ rows: [[UInt8]]) -> [UInt8] {
        Container.png(
          width: width, height: height, bitDepth: kind.bitDepth, colorType: kind.colorType, rows: Array(rows.joined()))
      }
      let expected = try Pixels.decode(image(unfiltered(rows, pixelByteCount: kind.pixelByteCount)))
      for windowByteCount in [61, .max] {
        let pixels = try Pixels.decode(image(rows), windowByteCount: windowByteCount)
        #expect(pixels == expected, "\(width)x\(height): \(rows)")
      }
    }
  }

  /// Returns the rows with filter 0, following the PNG specification, section 9.2.
  private func unfiltered(_ rows: [[UInt8]], pixelByteCount: Int) -> [[UInt8]] {
    var above = [UInt8](repeating: 0, count: rows[0].count)
    return rows.map { stored in
      var row = stored
      for i in 1..<row.count {
        let (a, c) = i > pixelByteCount ? (Int(row[i - pixelByteCount]), Int(above[i - pixelByteCount])) : (0, 0)
        let b = Int(above[i])
        let prediction =
          switch stored[0] {
          case 1: a
          case 2: b
          case 3: (a + b) / 2
          case 4: [a, b, c].min { abs(a + b - c - $0) < abs(a + b - c - $1) }!  // the first of equal distances
          default: 0
          }
        row[i] &+= UInt8(prediction)
      }
      row[0] = 0
      above = row
      return row
    }
  }
}
