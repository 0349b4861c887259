internal import ImagePipeline

/// A rectangle in pixels, measured from the top left corner.
public struct PixelRectangle: Sendable, Hashable {
  /// The left edge.
  public let x: Int
  /// The top edge.
  public let y: Int
  /// The width.
  public let width: Int
  /// The height.
  public let height: Int

  init(_ rect: PixelRect) { (x, y, width, height) = (rect.x, rect.y, rect.width, rect.height) }
}
