internal import ImageCodecs
internal import ImagePipeline

/// The layout of a raw result, whose bytes are the elements of an array alone.
public struct TensorInfo: Sendable, Hashable {
  private let info: ImagePipeline.TensorInfo

  init(_ info: ImagePipeline.TensorInfo) { self.info = info }

  /// The type of the elements: `u8`, `f16`, `bf16` or `f32`, little-endian.
  public var elementType: String { info.element.rawValue }
  /// The order of the dimensions: `hwc` or `chw`.
  public var layout: String { info.layout.rawValue }
  /// The channels and their order: `rgb`, `bgr` or `gray`.
  public var channels: String { info.channels.rawValue }
  /// The size of each dimension, in the order of ``layout``.
  public var shape: [Int] { info.shape }
  /// The distance in bytes between neighbors along each dimension.
  public var strides: [Int] { info.strides }
  /// The part that shows the image, in pixels of the result; the rest is padding.
  public var content: PixelRectangle { PixelRectangle(info.content) }
}
