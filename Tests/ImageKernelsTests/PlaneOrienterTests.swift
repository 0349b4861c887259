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

  @Test("mirrors rows as they arrive")
  func mirrors() throws {
    let plane = try buffer(Self.stored)
    let orienter = try PlaneOrienter(
      .mirrored, width: 3, height: 2, pixelByteCount: 1, budget: ImageBudget(limit: 1 << 20))
    #expect(orienter.mirror(plane.rows(count: 2)).contents == [[3, 2, 1], [6, 5, 4]])
  }
}
