/// A rectangle of whole pixels.
package struct PixelRect: Sendable, Hashable, Encodable {
  /// The left edge in pixels.
  package var x: Int
  /// The top edge in pixels.
  package var y: Int
  /// The width in pixels.
  package var width: Int
  /// The height in pixels.
  package var height: Int

  package init(x: Int, y: Int, width: Int, height: Int) {
    self.x = x
    self.y = y
    self.width = width
    self.height = height
  }

  /// Creates the rectangle of whole pixels that is the closest to a window.
  init(_ window: Window) {
    self.init(
      x: Int(window.x.rounded()), y: Int(window.y.rounded()), width: Int(window.width.rounded()),
      height: Int(window.height.rounded()))
  }
}

extension Crop {
  init(_ rect: PixelRect) {
    self.init(x: Double(rect.x), y: Double(rect.y), width: Double(rect.width), height: Double(rect.height))
  }
}
