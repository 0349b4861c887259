package import Fields
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
  package init?(_ value: FieldValue) {
    do throws(FieldError) {
      let fields = try Reader(value)
      let layout = try TensorOptions.Layout(fields["layout"], field: "layout")
      let shape = try [Int](fields["shape"], field: "shape")
      let content = try Reader(fields["content"])
      let box = try ["x", "y", "width", "height"].map { (name) throws(FieldError) in
        try content.has(name) ? Int(content[name], field: name) : 0
      }
      guard shape.count == 3, (shape + box).allSatisfy({ $0 <= Self.maxSide }),
        (shape + box.dropFirst(2)).allSatisfy({ $0 > 0 })
      else { return nil }
      let sides = layout == .hwc ? shape[0...1] : shape[1...2]
      self.init(
        element: try TensorOptions.ElementType(fields["element_type"], field: "element_type"), layout: layout,
        channels: try TensorOptions.Channels(fields["channels"], field: "channels"),
        size: PixelSize(width: sides.last ?? 0, height: sides.first ?? 0),
        content: PixelRect(x: box[0], y: box[1], width: box[2], height: box[3]))
    } catch { return nil }
  }

  /// The fields of a record.
  private struct Reader {
    private let fields: [String: FieldValue]

    init(_ value: FieldValue) throws(FieldError) {
      guard case .record(let fields) = value else { throw FieldError("no record", field: "") }
      self.fields = fields
    }

    func has(_ name: String) -> Bool { fields[name] != nil }

    /// The field; an empty record if it is not set, which no other type accepts.
    subscript(name: String) -> FieldValue { fields[name] ?? .record([:]) }
  }
}
