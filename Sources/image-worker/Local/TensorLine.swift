internal import ImageCodecs
internal import ImagePipeline

/// The layout of a raw result, which its file does not state.
struct TensorLine: Sendable, Encodable {
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
  /// The part that shows the image, without padding, in pixels of the result.
  var content: PixelRect

  init(_ info: TensorInfo) {
    (elementType, layout, channels) = (info.element.rawValue, info.layout.rawValue, info.channels.rawValue)
    (shape, strides, content) = (info.shape, info.strides, info.content)
  }
}
