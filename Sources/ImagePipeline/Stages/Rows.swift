internal import ImageCodecs

extension Strip.Rows {
  /// The first byte of a row.
  func row(_ index: Int) -> UnsafePointer<UInt8> {
    (base + index * rowStride).assumingMemoryBound(to: UInt8.self)
  }

  /// The first sample of a row of samples of 16 bits.
  func deepRow(_ index: Int) -> UnsafePointer<UInt16> {
    (base + index * rowStride).assumingMemoryBound(to: UInt16.self)
  }

  func prefix(_ count: Int) -> Strip.Rows {
    Strip.Rows(base: base, rowStride: rowStride, rowCount: min(count, rowCount))
  }

  mutating func dropFirst(_ count: Int) {
    base += count * rowStride
    rowCount -= count
  }

  /// These rows, `count` at a time.
  func portions(of count: Int) -> [Strip.Rows] {
    stride(from: 0, to: rowCount, by: count).map { first in
      Strip.Rows(base: base + first * rowStride, rowStride: rowStride, rowCount: min(count, rowCount - first))
    }
  }
}

extension Strip {
  /// A strip of as many planes as `rows`: one, or three.
  init(format: PixelFormat, rows: [Rows]) {
    if rows.count == 3 {
      self.init(format: format, planes: (rows[0], rows[1], rows[2]))
    } else {
      self.init(format: format, rows: rows[0])
    }
  }
}
