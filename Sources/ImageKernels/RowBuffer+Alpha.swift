internal import CPixels
package import ImageCodecs

/// Rows of RGBA.
extension RowBuffer {
  /// Whether no pixel is transparent.
  package var isOpaque: Bool { (0..<rowCount).allSatisfy { cpixels_are_opaque(bytes($0), rowByteCount / 4) } }

  /// Moves red, green and blue of the pixels to the start of their rows.
  package func dropAlpha() {
    for row in 0..<rowCount {
      let pixels = bytes(row)
      for x in 0..<rowByteCount / 4 {
        for channel in 0..<3 { pixels[3 * x + channel] = pixels[4 * x + channel] }
      }
    }
  }
}
