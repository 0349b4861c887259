import ImageCodecs
import TestSupport

extension Strip.Rows {
  /// The bytes of each row.
  var contents: [[UInt8]] {
    (0..<rowCount).map { row in
      var bytes: [UInt8] = []
      withRow(row) { bytes.append($0) }
      return bytes
    }
  }
}

/// Returns a buffer with `rows`, which must have equal lengths.
func buffer(_ rows: [[UInt8]]) throws -> RowBuffer {
  let buffer = try RowBuffer(
    rowByteCount: rows[0].count, rowCount: rows.count, budget: ImageBudget(limit: 1 << 20))
  for (index, row) in rows.enumerated() {
    buffer.withMutableRow(index) { span in
      for offset in row.indices { span[offset] = row[offset] }
    }
  }
  return buffer
}
