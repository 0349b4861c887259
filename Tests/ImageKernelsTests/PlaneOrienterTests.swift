import ImageCodecs
import ImageKernels
import Testing

@Suite("Plane orienter")
struct PlaneOrienterTests {
  private static let stored: [[UInt8]] = [[1, 2, 3], [4, 5, 6]]

  @Test(
    "orients a plane as its orientation specifies",
    arguments: [
      (Orientation.down, [[6, 5, 4], [3, 2, 1]]),
      (.downMirrored, [[4, 5, 6], [1, 2, 3]]),
      (.transposed, [[1, 4], [2, 5], [3, 6]]),
      (.right, [[4, 1], [5, 2], [6, 3]]),
      (.transversed, [[6, 3], [5, 2], [4, 1]]),
      (.left, [[3, 6], [2, 5], [1, 4]]),
    ] as [(Orientation, [[UInt8]])])
  func places(orientation: Orientation, shown: [[UInt8]]) throws {
    let plane = try buffer(Self.stored)
    var orienter = try PlaneOrienter(
      orientation, width: 3, height: 2, pixelByteCount: 1, budget: ImageBudget(limit: 1 << 20))
    for portion in plane.rows(count: 2).portions(of: 1) { orienter.place(portion) }
    #expect(orienter.rows.contents == shown)
  }

  @Test(
    "gives the same plane however its rows are cut", arguments: [.down, .transposed, .right, .left] as [Orientation],
    [1, 5, 16, 23])
  func cuts(orientation: Orientation, rowCount: Int) throws {
    let plane = try buffer((0..<41).map { y in (0..<35).map { x in UInt8(truncatingIfNeeded: x * 7 + y * 35) } })
    var orienter = try PlaneOrienter(
      orientation, width: 35, height: 41, pixelByteCount: 1, budget: ImageBudget(limit: 1 << 20))
    for _ in 0..<2 {  // frames
      for portion in plane.rows(count: 41).portions(of: rowCount) { orienter.place(portion) }
      let shown = orienter.rows.contents
      for y in 0..<41 {
        for x in 0..<35 {
          let (column, row) = place(x, y, orientation)
          #expect(shown[row][column] == UInt8(truncatingIfNeeded: x * 7 + y * 35))
        }
      }
      orienter.reset()
    }
  }

  /// Returns the displayed column and row of a pixel of a stored plane of 35x41.
  private func place(_ x: Int, _ y: Int, _ orientation: Orientation) -> (Int, Int) {
    switch orientation {
    case .down: (34 - x, 40 - y)
    case .transposed: (y, x)
    case .right: (40 - y, x)
    case .left: (y, 34 - x)
    case .up, .mirrored, .downMirrored, .transversed: (x, y)
    }
  }

  @Test("mirrors rows as they arrive")
  func mirrors() throws {
    let plane = try buffer(Self.stored)
    let orienter = try PlaneOrienter(
      .mirrored, width: 3, height: 2, pixelByteCount: 1, budget: ImageBudget(limit: 1 << 20))
    #expect(orienter.mirror(plane.rows(count: 2)).contents == [[3, 2, 1], [6, 5, 4]])
  }
}
