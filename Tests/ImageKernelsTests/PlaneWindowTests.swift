import ImageCodecs
import ImageKernels
import Testing

@Suite("Plane window")
struct PlaneWindowTests {
  /// Six rows of six samples with the value 10 times the row plus the column.
  private static let plane = (0..<6).map { row in (0..<6).map { UInt8(10 * row + $0) } }

  @Test("returns the samples under the window, for any strip height", arguments: [1, 2, 4, 6])
  func takes(rowCount: Int) throws {
    let plane = try buffer(Self.plane)
    var window = PlaneWindow(
      PlaneLayout(width: 6, height: 6), x: 1, y: 2, width: 3, height: 2, isWhole: false, pixelByteCount: 1)
    var taken: [[UInt8]] = []
    for portion in plane.rows(count: 6).portions(of: rowCount) { taken += window.take(portion).contents }
    #expect(taken == [[21, 22, 23], [31, 32, 33]])
    #expect(window.isPassed)
  }

  @Test("has no other samples if an edge is off by a rounding error", arguments: [-1e-14, 0, 1e-14])
  func rounding(error: Double) throws {
    let plane = try buffer(Self.plane)
    var window = PlaneWindow(
      PlaneLayout(width: 6, height: 6), x: error, y: 2 + error, width: 3 - 2 * error, height: 2, isWhole: false,
      pixelByteCount: 1)
    #expect(window.take(plane.rows(count: 6)).contents == [[20, 21, 22], [30, 31, 32]])
    #expect(window.columnOffset >= 0 && window.rowOffset >= 0)
  }

  @Test("of a chroma plane includes every touched sample, and reports the offset in the first one")
  func chroma() throws {
    let layout = PlaneLayout(width: 6, height: 6, horizontalScale: 0.5, verticalScale: 0.5)
    let window = PlaneWindow(layout, x: 3, y: 4, width: 4, height: 8, isWhole: false, pixelByteCount: 1)
    #expect(window.columnCount == 3)
    #expect(window.columnOffset == 0.5)
    #expect(window.rowCount == 4)
    #expect(window.rowOffset == 0)
    #expect(!window.isPassed)
  }
}
