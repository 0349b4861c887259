internal import ImageCodecs

/// The element type and the dimensions of raw results.
package struct TensorShape: Sendable, Hashable {
  /// The name of the element type in the Open Inference Protocol (KServe v2), as in `FP16`.
  package let datatype: String
  /// The size of each dimension, in the order of the layout; `nil` where it depends on the image.
  package let dimensions: [Int?]
  private let elementByteCount: Int

  /// Creates the shape of a result.
  package init(_ info: TensorInfo) {
    self.init(element: info.element, dimensions: info.shape)
  }

  /// Creates the shape of the raw results of a configuration.
  package init(_ configuration: ProcessingConfiguration) {
    let options = configuration.tensor ?? TensorOptions()
    let size = Self.size(configuration)
    let (height, width, channels) = (size?.height, size?.width, options.order.count)
    self.init(
      element: options.element, dimensions: options.isPlanar ? [channels, height, width] : [height, width, channels])
  }

  private init(element: TensorOptions.ElementType, dimensions: [Int?]) {
    datatype = element.datatype
    elementByteCount = element.byteCount
    self.dimensions = dimensions
  }

  /// The size of a result in bytes; `nil` if it depends on the image.
  package var byteCount: Int? {
    dimensions.reduce(elementByteCount) { product, side in product.flatMap { product in side.map { product * $0 } } }
  }

  /// Returns the size of the results of a configuration in pixels; `nil` if it depends on the image.
  ///
  /// Sizes of results grow with those of images, so they are the same for all images if they are for the extreme ones.
  private static func size(_ configuration: ProcessingConfiguration) -> PixelSize? {
    let sides = [1, ProcessingConfiguration.maxBound]
    let images = sides.flatMap { width in sides.map { PixelSize(width: width, height: $0) } }
    let sizes = images.compactMap { try? Framing(shown: $0, configuration: configuration).canvasSize }
    return Set(sizes).count == 1 ? sizes.first : nil
  }
}

extension TensorOptions.ElementType {
  fileprivate var datatype: String {
    switch self {
    case .u8: "UINT8"
    case .f16: "FP16"
    case .bf16: "BF16"
    case .f32: "FP32"
    }
  }
}
