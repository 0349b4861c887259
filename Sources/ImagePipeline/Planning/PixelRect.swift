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

  /// Creates the rectangle of whole pixels that is the closest to a window: its edges are rounded, and no side is empty.
  init(_ window: Window) {
    func span(_ start: Double, _ length: Double) -> (first: Int, count: Int) {
      let end = start + length
      let first = min(Int(start.rounded()), Int(end.rounded(.up)) - 1)
      return (first, max(Int(end.rounded()) - first, 1))
    }
    let (columns, rows) = (span(window.x, window.width), span(window.y, window.height))
    self.init(x: columns.first, y: rows.first, width: columns.count, height: rows.count)
  }
}

extension Crop {
  init(_ rect: PixelRect) {
    self.init(x: Double(rect.x), y: Double(rect.y), width: Double(rect.width), height: Double(rect.height))
  }
}
