internal import GRPCCore
internal import ProtobufWire
internal import Tracing
internal import WorkerProtocol

/// A span, serialized as a field of `ScopeSpans`.
///
/// Source: opentelemetry-proto 1, trace.proto and common.proto; the field numbers below are theirs.
struct OTLPSpan: Sendable {
  fileprivate let bytes: [UInt8]

  init(_ span: FinishedSpan) {
    var writer = WireWriter()
    // Enough for the worker's own spans; the buffer is short-lived.
    writer.reserveCapacity(640)
    writer.message(2) { $0.fields(of: span) }
    bytes = writer.bytes
  }
}

/// Serialized spans, concatenated as on the wire.
struct OTLPSpanBatch: BatchContents, Sendable {
  /// Size in bytes that is enough for most spans.
  private static let expectedByteCount = 384

  private(set) var count = 0
  fileprivate private(set) var bytes: [UInt8] = []

  init(capacity: Int) { bytes.reserveCapacity(capacity * Self.expectedByteCount) }

  mutating func append(_ span: OTLPSpan) {
    bytes += span.bytes
    count += 1
  }
}

/// A batch of spans, serialized as an `ExportTraceServiceRequest`.
struct OTLPTraceRequest: Sendable {
  let bytes: [UInt8]

  /// Creates a request from spans and a serialized `Resource`.
  init(_ spans: OTLPSpanBatch, resource: [UInt8]) {
    var scope = WireWriter()
    scope.message(1) {
      $0.string(1, "image-worker")
      $0.string(2, WorkerVersion.current)
    }
    var schema = WireWriter()
    schema.string(3, SemanticConventions.schemaURL)
    var head = WireWriter()
    head.data(1, resource)
    head.header(2, byteCount: scope.bytes.count + spans.bytes.count + schema.bytes.count)
    let rest = [head.bytes, scope.bytes, spans.bytes, schema.bytes, schema.bytes]
    // Assemble the long message in one buffer of the right size.
    let byteCount = rest.reduce(0) { $0 + $1.count }
    var writer = WireWriter()
    writer.reserveCapacity(byteCount + 16)
    writer.header(1, byteCount: byteCount)
    for part in rest { writer.append(part) }
    bytes = writer.bytes
  }
}

/// Passes on the bytes of a request that is already serialized.
struct OTLPTraceSerializer: MessageSerializer {
  func serialize<Bytes: GRPCContiguousBytes>(_ request: OTLPTraceRequest) -> Bytes { Bytes(request.bytes) }
}

extension WireWriter {
  fileprivate mutating func fields(of span: FinishedSpan) {
    names(of: span.context, state: 3)
    if let parent = span.parent { bigEndian(4, parent.spanID.value) }
    string(5, span.name)
    varint(6, span.kind.number)
    fixed64(7, span.start)
    fixed64(8, span.end)
    attributes(9, span.attributes)
    varint(10, UInt64(clamping: span.droppedAttributeCount))
    for event in span.events {
      message(11) { fields in
        fields.fixed64(1, event.nanosecondsSinceEpoch)
        fields.string(2, event.name)
        fields.attributes(3, event.attributes)
      }
    }
    varint(12, UInt64(clamping: span.droppedEventCount))
    for link in span.links {
      // A context may contain no span.
      guard let context = link.context.spanContext else { continue }
      message(13) { fields in
        fields.names(of: context, state: 3)
        fields.attributes(4, link.attributes)
        fields.fixed32(6, Self.flags(context, isRemote: context.isRemote))
      }
    }
    varint(14, UInt64(clamping: span.droppedLinkCount))
    if let status = span.status {
      message(15) { fields in
        fields.string(2, status.message ?? "")
        fields.varint(3, status.code == .ok ? 1 : 2)
      }
    }
    fixed32(16, Self.flags(span.context, isRemote: span.parent?.isRemote ?? false))
  }

  private mutating func names(of context: SpanContext, state field: Int32) {
    bigEndian(1, high: context.traceID.high, low: context.traceID.low)
    bigEndian(2, context.spanID.value)
    string(field, context.state.description)
  }

  private mutating func attributes(_ field: Int32, _ attributes: SpanAttributes) {
    attributes.forEach { key, value in
      message(field) { pair in
        pair.string(1, key)
        pair.message(2) { $0.value(value) }
      }
    }
  }

  private mutating func value(_ attribute: SpanAttribute) {
    switch attribute {
    case .string(let text): string(1, text, isPresent: true)
    case .stringConvertible(let value): string(1, "\(value)", isPresent: true)
    case .bool(let value): varint(2, value ? 1 : 0, isPresent: true)
    case .int32(let value): varint(3, UInt64(bitPattern: Int64(value)), isPresent: true)
    case .int64(let value): varint(3, UInt64(bitPattern: value), isPresent: true)
    case .double(let value): fixed64(4, value.bitPattern, isPresent: true)
    case .int32Array(let values): array(values.map { .int32($0) })
    case .int64Array(let values): array(values.map { .int64($0) })
    case .doubleArray(let values): array(values.map { .double($0) })
    case .boolArray(let values): array(values.map { .bool($0) })
    case .stringArray(let values): array(values.map { .string($0) })
    case .stringConvertibleArray(let values): array(values.map { .string("\($0)") })
    default: break
    }
  }

  private mutating func array(_ values: [SpanAttribute]) {
    message(5) { list in
      for value in values { list.message(1) { $0.value(value) } }
    }
  }

  /// Returns the trace flags, with the bits that say whether the other span is remote.
  private static func flags(_ context: SpanContext, isRemote: Bool) -> UInt32 {
    UInt32(context.flags.rawValue) | UInt32(Opentelemetry_Proto_Trace_V1_SpanFlags.contextHasIsRemoteMask.rawValue)
      | (isRemote ? UInt32(Opentelemetry_Proto_Trace_V1_SpanFlags.contextIsRemoteMask.rawValue) : 0)
  }
}

extension Tracing.SpanKind {
  fileprivate var number: UInt64 {
    switch self {
    case .internal: 1
    case .server: 2
    case .client: 3
    case .producer: 4
    case .consumer: 5
    }
  }
}
