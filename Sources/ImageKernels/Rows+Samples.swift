internal import ImageCodecs

extension Strip.Rows {
  /// Returns the address of a row of 8-bit samples.
  func bytes(_ index: Int) -> UnsafePointer<UInt8> { unsafeRow(index).assumingMemoryBound(to: UInt8.self) }

  /// Returns the address of a row of 16-bit samples.
  func samples(_ index: Int) -> UnsafePointer<UInt16> { unsafeRow(index).assumingMemoryBound(to: UInt16.self) }
}

extension RowBuffer {
  /// Returns the address of a row of 8-bit samples.
  func bytes(_ index: Int) -> UnsafeMutablePointer<UInt8> { unsafeRow(index).assumingMemoryBound(to: UInt8.self) }

  /// Returns the address of a row of 16-bit samples.
  func samples(_ index: Int) -> UnsafeMutablePointer<UInt16> { unsafeRow(index).assumingMemoryBound(to: UInt16.self) }
}
