package import ImageCodecs

extension Strip.Rows {
  /// Calls `body` with the bytes of a row; traps unless `index` is between 0 and `rowCount - 1`.
  package func withRow<Result: ~Copyable>(_ index: Int, _ body: (RawSpan) -> Result) -> Result {
    body(UnsafeRawBufferPointer(start: unsafeRow(index), count: rowByteCount).bytes)
  }
}
