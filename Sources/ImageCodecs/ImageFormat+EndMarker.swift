extension ImageFormat {
  /// Returns whether `bytes`, which follow a JPEG's header, contain an end marker; `false` for other formats.
  ///
  /// The search starts at the end, where nearly every file has its marker.
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
