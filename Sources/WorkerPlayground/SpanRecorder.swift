internal import Synchronization
internal import Tracing

/// A tracer that also records the spans of one call, for its page.
struct SpanRecorder: Tracer {
  /// An ended span; times are in nanoseconds since 1970.
  struct Record: Sendable, Encodable {
    var name: String
    var start: UInt64
    var end: UInt64
    /// The attributes that are numbers, flags or texts, as texts.
    var attributes: [String: String]
  }

  /// The spans that have ended.
  final class Records: Sendable {
    private let records = Mutex<[Record]>([])

    func append(_ record: Record) { records.withLock { $0.append(record) } }

    var all: [Record] { records.withLock { $0 } }
  }

  let base: any Tracer
  let records = Records()

  func startSpan<Instant: TracerInstant>(
    _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
    at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
  ) -> RecordedSpan {
    let start = instant()
    let span = base.startSpan(
      operationName, context: context(), ofKind: kind, at: start, function: function, file: fileID, line: line)
    return RecordedSpan(span, name: operationName, start: start.nanosecondsSinceEpoch, records: records)
  }

  func forceFlush() {}

  func extract<Carrier, Extract: Extractor>(
    _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
  ) where Extract.Carrier == Carrier {
    base.extract(carrier, into: &context, using: extractor)
  }

  func inject<Carrier, Inject: Injector>(
    _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
  ) where Inject.Carrier == Carrier {
    base.inject(context, into: &carrier, using: injector)
  }
}

/// A span that is recorded when it ends, whether its trace is sampled or not.
struct RecordedSpan: Span {
  private let base: any Span
  private let name: String
  private let start: UInt64
  private let records: SpanRecorder.Records
  // A copy: a span that is not sampled keeps no attributes.
  private let noted = Noted()

  private final class Noted: Sendable {
    let attributes = Mutex(SpanAttributes())
  }

  init(_ base: any Span, name: String, start: UInt64, records: SpanRecorder.Records) {
    self.base = base
    self.name = name
    self.start = start
    self.records = records
  }

  var context: ServiceContext { base.context }
  var isRecording: Bool { true }

  var operationName: String {
    get { base.operationName }
    nonmutating set { base.operationName = newValue }
  }

  var attributes: SpanAttributes {
    get { noted.attributes.withLock { $0 } }
    nonmutating set {
      noted.attributes.withLock { $0 = newValue }
      base.attributes = newValue
    }
  }

  func setStatus(_ status: SpanStatus) { base.setStatus(status) }
  func addEvent(_ event: SpanEvent) { base.addEvent(event) }
  func addLink(_ link: SpanLink) { base.addLink(link) }

  func recordError<Instant: TracerInstant>(
    _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
  ) {
    base.recordError(error, attributes: attributes, at: instant())
  }

  func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
    let end = instant()
    var texts: [String: String] = [:]
    attributes.forEach { name, value in texts[name] = Self.text(value) }
    records.append(
      .init(name: name, start: start, end: max(start, end.nanosecondsSinceEpoch), attributes: texts))
    base.end(at: end)
  }

  private static func text(_ value: SpanAttribute) -> String? {
    switch value {
    case .int32(let value): "\(value)"
    case .int64(let value): "\(value)"
    case .double(let value): "\(value)"
    case .bool(let value): "\(value)"
    case .string(let value): value
    default: nil
    }
  }
}
