internal import ImageCodecs
internal import ImagePipeline

/// The layout of a raw result, which its file does not state.
struct TensorLine: Sendable, Encodable {
  /// The part that shows the image, without padding, in pixels of the result.
  struct Content: Sendable, Encodable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int
  }

  /// `u8`, `f16`, `bf16` or `f32`.
  var elementType: String
  /// `hwc` or `chw`.
  var layout: String
  /// `rgb`, `bgr` or `gray`.
  var channels: String
  /// The size of each dimension, in the order of the layout.
  var shape: [Int]
  /// The distance in bytes between neighbors along each dimension.
  var strides: [Int]
  var content: Content

  init(_ info: TensorInfo) {
    (elementType, layout, channels) = (info.element.rawValue, info.layout.rawValue, info.channels.rawValue)
    (shape, strides) = (info.shape, info.strides)
    let part = info.content
    content = Content(x: part.x, y: part.y, width: part.size.width, height: part.size.height)
  }
}
