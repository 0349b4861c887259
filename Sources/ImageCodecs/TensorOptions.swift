internal import CCodecs
package import Fields

/// Options for raw results.
///
/// A field that is `nil` has its default value.
package struct TensorOptions: Sendable, Hashable {
  /// The type of the elements.
  package enum ElementType: String, Sendable, Hashable, FieldChoice {
    case u8, f16, bf16, f32
  }

  /// The order of the dimensions.
  package enum Layout: String, Sendable, Hashable, FieldChoice {
    case hwc, chw
  }

  /// The channels and their order.
  package enum Channels: String, Sendable, Hashable, FieldChoice {
    case rgb, bgr, gray
  }

  /// A set of scale, mean and standard deviation.
  package enum Normalization: String, Sendable, Hashable, FieldChoice {
    case none, unit, half, imagenet, clip
  }

  /// The type of the elements; `u8` by default.
  package var elementType: ElementType?
  /// The order of the dimensions; `hwc` by default.
  package var layout: Layout?
  /// The channels; `rgb` by default.
  package var channels: Channels?
  /// The scale, mean and standard deviation by name; `none` by default for `u8`, `unit` for other types.
  package var normalization: Normalization?
  /// The factor of samples.
  package var scale: Double?
  /// The value that is subtracted from scaled samples.
  package var mean: ChannelValues?
  /// The divisor of the difference.
  package var standardDeviation: ChannelValues?

  package init(
    elementType: ElementType? = nil, layout: Layout? = nil, channels: Channels? = nil,
    normalization: Normalization? = nil, scale: Double? = nil, mean: ChannelValues? = nil,
    standardDeviation: ChannelValues? = nil
  ) {
    self.elementType = elementType
    self.layout = layout
    self.channels = channels
    self.normalization = normalization
    self.scale = scale
    self.mean = mean
    self.standardDeviation = standardDeviation
  }

  /// The C options.
  var handle: ccodecs_raw_options {
    let (scales, offsets) = (scaling.map(\.scale), scaling.map(\.offset))
    return ccodecs_raw_options(
      element: element.handle, channels: order.handle, is_planar: isPlanar, scales: (scales[0], scales[1], scales[2]),
      offsets: (offsets[0], offsets[1], offsets[2]))
  }
}

// MARK: - Effective values

extension TensorOptions {
  /// The type of the elements.
  package var element: ElementType { elementType ?? .u8 }
  /// The channels and their order.
  package var order: Channels { channels ?? .rgb }
  /// Whether one plane follows another.
  package var isPlanar: Bool { layout == .chw }

  /// The factor and the addend of each channel of the result, in its order; three also for gray.
  package var scaling: [(scale: Float, offset: Float)] {
    let named = normalization ?? (element == .u8 ? .none : .unit)
    let factor = scale ?? named.scale
    let colors = (0..<3).map { channel in
      let deviation = (standardDeviation ?? named.standardDeviation)[channel]
      return (
        scale: Float(factor / deviation), offset: Float(-(mean ?? named.mean)[channel] / deviation)
      )
    }
    return order == .bgr ? colors.reversed() : colors
  }
}

extension TensorOptions.ElementType {
  /// The size of an element in bytes.
  package var byteCount: Int {
    switch self {
    case .u8: 1
    case .f16, .bf16: 2
    case .f32: 4
    }
  }

  fileprivate var handle: ccodecs_raw_element {
    switch self {
    case .u8: CCODECS_RAW_U8
    case .f16: CCODECS_RAW_F16
    case .bf16: CCODECS_RAW_BF16
    case .f32: CCODECS_RAW_F32
    }
  }
}

extension TensorOptions.Channels {
  /// The number of channels.
  package var count: Int {
    switch self {
    case .rgb, .bgr: 3
    case .gray: 1
    }
  }

  fileprivate var handle: ccodecs_raw_channels {
    switch self {
    case .rgb: CCODECS_RAW_RGB
    case .bgr: CCODECS_RAW_BGR
    case .gray: CCODECS_RAW_GRAY
    }
  }
}

extension TensorOptions.Normalization {
  /// Whether red, green and blue have different values.
  package var isOfColors: Bool {
    switch self {
    case .none, .unit, .half: false
    case .imagenet, .clip: true
    }
  }

  fileprivate var scale: Double { self == .none ? 1 : 1 / 255 }

  fileprivate var mean: ChannelValues {
    switch self {
    case .none, .unit: ChannelValues([0])
    case .half: ChannelValues([0.5])
    case .imagenet: ChannelValues([0.485, 0.456, 0.406])
    case .clip: ChannelValues([0.48145466, 0.4578275, 0.40821073])
    }
  }

  fileprivate var standardDeviation: ChannelValues {
    switch self {
    case .none, .unit: ChannelValues([1])
    case .half: ChannelValues([0.5])
    case .imagenet: ChannelValues([0.229, 0.224, 0.225])
    case .clip: ChannelValues([0.26862954, 0.26130258, 0.27577711])
    }
  }
}

// MARK: - Fields

extension TensorOptions: FieldRecord {
  package init() { self.init(elementType: nil) }

  private static let maxMagnitude = 1_000_000.0

  package static let fields: [Field<TensorOptions>] = [
    Field(
      "element_type", \.elementType, option: "tensor-type", takes: "type",
      help: "Raw: Set the type of the elements. Default: u8."),
    Field(
      "layout", \.layout, option: "tensor-layout", takes: "layout",
      help: "Raw: Set the order of the dimensions. Default: hwc."),
    Field(
      "channels", \.channels, option: "tensor-channels", takes: "channels",
      help: "Raw: Set the channels and their order. Default: rgb."),
    Field(
      "normalization", \.normalization, option: "tensor-normalization", takes: "name",
      help: "Raw: Choose scale, mean and standard deviation by name. Default: unit (0 to 1), for u8 none."),
    Field(
      "scale", \.scale, .values("above 0 and at most 1000000") { $0 > 0 && $0 <= maxMagnitude }, option: "tensor-scale",
      takes: "factor", help: "Raw: Multiply samples, 0 to 255, by this. Default: that of the normalization."),
    Field(
      "mean", \.mean,
      .values("1 or 3 numbers between -1000000 and 1000000") {
        $0.hasValidCount && $0.values.allSatisfy { (-maxMagnitude...maxMagnitude).contains($0) }
      }, option: "tensor-mean", takes: "numbers",
      help: "Raw: Subtract this from scaled samples: one number, or those of red, green and blue. Default: that of the "
        + "normalization."),
    Field(
      "standard_deviation", \.standardDeviation,
      .values("1 or 3 numbers between 0.000001 and 1000000") {
        $0.hasValidCount && $0.values.allSatisfy { (1 / maxMagnitude...maxMagnitude).contains($0) }
      }, option: "tensor-deviation", takes: "numbers",
      help:
        "Raw: Divide by this after the mean was subtracted: one number, or three. Default: that of the normalization."),
  ]
}

/// A number for all channels, or one each for red, green and blue.
package struct ChannelValues: Sendable, Hashable, CustomStringConvertible {
  /// The numbers, one or three.
  package let values: [Double]

  package init(_ values: [Double]) { self.values = values }

  /// Whether there is one number, or one for each color.
  package var hasValidCount: Bool { values.count == 1 || values.count == 3 }

  /// Returns the number of a color; the first one stands for those that are missing.
  subscript(color: Int) -> Double { values.count > color ? values[color] : values.first ?? 0 }

  package var description: String { values.map { "\($0)" }.joined(separator: ",") }
}

extension ChannelValues: FieldConvertible {
  package var fieldValue: FieldValue { values.fieldValue }

  package init(_ value: FieldValue, field: String) throws(FieldError) { values = try [Double](value, field: field) }

  package init(text: String, field: String) throws(FieldError) {
    var values: [Double] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let value = Double(part) else { throw Self.unreadable(text, field: field) }
      values.append(value)
    }
    self.values = values
  }

  package static var textForm: String { "a number, or three separated by commas" }
}
