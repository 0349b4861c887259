internal import SwiftProtobuf
internal import Tracing
internal import WorkerProtocol

typealias OTLPValue = Opentelemetry_Proto_Common_V1_AnyValue
typealias OTLPKeyValue = Opentelemetry_Proto_Common_V1_KeyValue
typealias OTLPResource = Opentelemetry_Proto_Resource_V1_Resource
typealias OTLPScope = Opentelemetry_Proto_Common_V1_InstrumentationScope

extension OTLPValue {
  init(_ text: String) {
    self.init()
    stringValue = text
  }

  init(_ attribute: SpanAttribute) {
    self.init()
    switch attribute {
    case .int32(let value): intValue = Int64(value)
    case .int64(let value): intValue = value
    case .double(let value): doubleValue = value
    case .bool(let value): boolValue = value
    case .string(let value): stringValue = value
    case .stringConvertible(let value): stringValue = "\(value)"
    case .int32Array(let values): arrayValue.values = values.map { Self(.int64(Int64($0))) }
    case .int64Array(let values): arrayValue.values = values.map { Self(.int64($0)) }
    case .doubleArray(let values): arrayValue.values = values.map { Self(.double($0)) }
    case .boolArray(let values): arrayValue.values = values.map { Self(.bool($0)) }
    case .stringArray(let values): arrayValue.values = values.map { Self($0) }
    case .stringConvertibleArray(let values): arrayValue.values = values.map { Self("\($0)") }
    default: break
    }
  }
}

extension OTLPKeyValue {
  init(_ key: String, _ value: OTLPValue) {
    self.init()
    self.key = key
    self.value = value
  }
}

extension SpanAttributes {
  var otlp: [OTLPKeyValue] {
    var pairs: [OTLPKeyValue] = []
    pairs.reserveCapacity(count)
    forEach { pairs.append(OTLPKeyValue($0, OTLPValue($1))) }
    return pairs
  }
}

extension OTLPResource {
  init(_ pairs: [(key: String, value: String)]) {
    self.init()
    attributes = pairs.map { OTLPKeyValue($0.key, OTLPValue($0.value)) }
  }
}

extension OTLPScope {
  /// What all telemetry of this worker comes from.
  static let worker: OTLPScope = .with { $0.name = "image-worker" }
}
