internal import ImageCodecs

/// Rows of one plane that wait for those of another, first in, first out.
final class RowQueue {
  private var buffer: PixelBuffer
  private let budget: PictureBudget
  private let rowByteCount: Int
  private var first = 0
  private(set) var rowCount = 0

  /// - `capacity`: rows to make room for at first; the queue grows when a plane runs further ahead.
  init(rowByteCount: Int, capacity: Int, budget: PictureBudget) throws(CodecError) {
    self.rowByteCount = rowByteCount
    self.budget = budget
    buffer = try PixelBuffer(byteCount: rowByteCount * capacity, budget: budget)
  }

  func append(_ rows: Strip.Rows) throws(CodecError) {
    try makeRoom(for: rows.rowCount)
    for row in 0..<rows.rowCount {
      (buffer.base + (first + rowCount + row) * rowByteCount).copyMemory(
        from: rows.base + row * rows.rowStride, byteCount: rowByteCount)
    }
    rowCount += rows.rowCount
  }

  /// The first `count` rows, which stay valid until the next append.
  ///
  /// `count` is at most `rowCount`.
  func take(_ count: Int) -> Strip.Rows {
    let rows = Strip.Rows(
      base: UnsafeRawPointer(buffer.base + first * rowByteCount), rowStride: rowByteCount, rowCount: count)
    first += count
    rowCount -= count
    return rows
  }

  private func makeRoom(for count: Int) throws(CodecError) {
    let capacity = buffer.byteCount / rowByteCount
    guard first + rowCount + count > capacity else { return }
    let waiting = UnsafeRawPointer(buffer.base + first * rowByteCount)
    if rowCount + count <= capacity {
      buffer.base.copyMemory(from: waiting, byteCount: rowCount * rowByteCount)
    } else {
      let larger = try PixelBuffer(byteCount: (rowCount + count) * 2 * rowByteCount, budget: budget)
      larger.base.copyMemory(from: waiting, byteCount: rowCount * rowByteCount)
      buffer = larger
    }
    first = 0
  }
}
