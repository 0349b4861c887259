internal import ImageCodecs

extension Strip.Rows {
  /// The first byte of a row.
  func bytes(_ index: Int) -> UnsafePointer<UInt8> { unsafeRow(index).assumingMemoryBound(to: UInt8.self) }

  /// The first sample of a row of samples of 16 bits.
  func samples(_ index: Int) -> UnsafePointer<UInt16> { unsafeRow(index).assumingMemoryBound(to: UInt16.self) }
}

extension RowBuffer {
  /// The first byte of a row.
  func bytes(_ index: Int) -> UnsafeMutablePointer<UInt8> { unsafeRow(index).assumingMemoryBound(to: UInt8.self) }

  /// The first sample of a row of samples of 16 bits.
  func samples(_ index: Int) -> UnsafeMutablePointer<UInt16> { unsafeRow(index).assumingMemoryBound(to: UInt16.self) }
}
