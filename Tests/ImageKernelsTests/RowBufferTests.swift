import ImageCodecs
import ImageKernels
import Testing

@Suite("Row buffer")
struct RowBufferTests {
  @Test("halves a plane to means of four, repeating the last sample at an odd end")
  func halves() throws {
    let plane = try buffer([[0, 4, 10], [8, 12, 20], [100, 104, 255]])
    let half = try plane.halvedPlane(budget: ImageBudget(limit: 1 << 20))
    #expect(half.rows(count: half.rowCount).contents == [[6, 15], [102, 255]])
  }

  @Test("fills its rows with a pixel, and accepts rows at a position")
  func writes() throws {
    let canvas = try buffer([[0, 0, 0, 0], [0, 0, 0, 0]])
    canvas.fill([1, 2])
    canvas.write(try buffer([[9]]).rows(count: 1), at: 1, byteOffset: 2)
    #expect(canvas.rows(count: 2).contents == [[1, 2, 1, 2], [1, 2, 9, 2]])
  }

  @Test("rows that do not fit are refused")
  func overflow() async {
    await #expect(processExitsWith: .failure) {
      let canvas = try buffer([[0, 0, 0, 0]])
      canvas.write(try buffer([[9, 9]]).rows(count: 1), at: 0, byteOffset: 3)
    }
    await #expect(processExitsWith: .failure) {
      let canvas = try buffer([[0, 0, 0, 0]])
      canvas.write(try buffer([[9, 9]]).rows(count: 1), at: 1)
    }
  }
}
