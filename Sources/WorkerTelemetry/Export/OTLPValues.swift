internal import SwiftProtobuf
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
}

extension OTLPKeyValue {
  init(_ key: String, _ value: OTLPValue) {
    self.init()
    self.key = key
    self.value = value
  }
}

extension OTLPResource {
  init(_ pairs: [(key: String, value: String)]) {
    self.init()
    attributes = pairs.map { OTLPKeyValue($0.key, OTLPValue($0.value)) }
  }
}

extension OTLPScope {
  /// The instrumentation scope of all telemetry of this worker.
  static let worker: OTLPScope = .with {
    $0.name = "image-worker"
    $0.version = WorkerVersion.current
  }
}
