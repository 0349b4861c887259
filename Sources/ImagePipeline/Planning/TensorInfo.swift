package import ImageCodecs

/// The layout of a raw result.
package struct TensorInfo: Sendable, Hashable {
  /// The type of the elements.
  package var element: TensorOptions.ElementType
  /// The order of the dimensions.
  package var layout: TensorOptions.Layout
  /// The channels and their order.
  package var channels: TensorOptions.Channels
  /// The size of the result in pixels.
  package var size: PixelSize
  /// The part of the result that shows the image, in pixels.
  package var content: PixelRect

  /// Creates the layout of a result.
  /// - `content`: the part that shows the image.
  package init(
    element: TensorOptions.ElementType, layout: TensorOptions.Layout, channels: TensorOptions.Channels,
    size: PixelSize, content: PixelRect
  ) {
    (self.element, self.layout, self.channels, self.size) = (element, layout, channels, size)
    self.content = content
  }

  /// Creates the layout of a plan's result; `nil` if it is not raw.
  init?(_ plan: Plan) {
    guard plan.encoder.format == .raw else { return nil }
    let options = plan.encoder.tensor
    let framing = plan.framing
    self.init(
      element: options.element, layout: options.layout ?? .hwc, channels: options.order, size: framing.canvasSize,
      content: PixelRect(
        x: framing.left, y: framing.top, width: framing.imageSize.width, height: framing.imageSize.height))
  }

  /// The size of each dimension.
  package var shape: [Int] {
    switch layout {
    case .hwc: [size.height, size.width, channels.count]
    case .chw: [channels.count, size.height, size.width]
    }
  }

  /// The distance in bytes between neighbors along each dimension.
  package var strides: [Int] {
    let shape = shape
    return [shape[1] * shape[2], shape[2], 1].map { $0 * element.byteCount }
  }
}

/// The fields of the message `TensorInfo`.
extension TensorInfo {
  /// The sides above which a layout is not one of a result; they can be multiplied.
  private static let maxSide = 1 << 24

  /// Creates a layout from the fields that another process or a file has; `nil` if they are not those of a result.
  ///
  /// - `element`, `layout`, `channels`: the names of choices; `nil` for one that is not set.
  package init?(
    element: String?, layout: String?, channels: String?, shape: [UInt32],
    content: (x: UInt32, y: UInt32, width: UInt32, height: UInt32)
  ) {
    guard let element = element.flatMap(TensorOptions.ElementType.init(rawValue:)),
      let layout = layout.flatMap(TensorOptions.Layout.init(rawValue:)),
      let channels = channels.flatMap(TensorOptions.Channels.init(rawValue:)),
      shape.count == 3, shape.allSatisfy({ 1...Self.maxSide ~= Int($0) }),
      max(content.x, content.y) <= Self.maxSide, 1...Self.maxSide ~= Int(content.width),
      1...Self.maxSide ~= Int(content.height)
    else { return nil }
    let (height, width) = layout == .hwc ? (shape[0], shape[1]) : (shape[1], shape[2])
    self.init(
      element: element, layout: layout, channels: channels, size: PixelSize(width: Int(width), height: Int(height)),
      content: PixelRect(
        x: Int(content.x), y: Int(content.y), width: Int(content.width), height: Int(content.height)))
  }
}
