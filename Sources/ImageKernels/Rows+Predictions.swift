package import ImageCodecs

extension Strip.Rows {
  /// The distance of rows whose pixels are looked at.
  private static let rowStep = 4

  /// The part of the pixels, 0 to 1, that lossless formats store in a few bits.
  ///
  /// They equal the pixel to the left or the one above, or continue the gradient of these. It is small in photographs and
  /// large in drawings.
  package func predictableShare(pixelByteCount: Int) -> Double {
    var (count, total) = (0, 0)
    for row in stride(from: 1, to: rowCount, by: Self.rowStep) {
      let (above, here) = (bytes(row - 1), bytes(row))
      for x in stride(from: pixelByteCount, to: rowByteCount - pixelByteCount + 1, by: pixelByteCount) {
        var isLeft = true, isAbove = true, isGradient = true
        for index in x..<x + pixelByteCount {
          let (left, upper, value) = (Int(here[index - pixelByteCount]), Int(above[index]), Int(here[index]))
          isLeft = isLeft && value == left
          isAbove = isAbove && value == upper
          isGradient = isGradient && value == left + upper - Int(above[index - pixelByteCount])
        }
        if isLeft || isAbove || isGradient { count += 1 }
        total += 1
      }
    }
    return total == 0 ? 1 : Double(count) / Double(total)
  }
}
