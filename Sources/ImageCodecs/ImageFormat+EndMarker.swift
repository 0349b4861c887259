extension ImageFormat {
  /// Whether the bytes behind a JPEG's header have its end marker; `false` for other formats.
  ///
  /// Looks from the end on, where it is in nearly every file.
  package func hasEndMarker(_ bytes: RawSpan) -> Bool {
    guard self == .jpeg else { return false }
    return bytes.withUnsafeBytes { buffer in
      var next: UInt8 = 0
      for byte in buffer.reversed() {
        if byte == 0xFF && next == 0xD9 { return true }
        next = byte
      }
      return false
    }
  }
}
