internal import ImagePipeline
internal import ProtobufWire
internal import Synchronization
internal import Tracing

/// A span that ended in a helper.
struct RecordedSpan {
  /// A value of an attribute; stages use no others.
  enum Attribute: Hashable {
    case integer(Int64)
    case flag(Bool)
    case number(Double)
    case text(String)
  }

  var name: String
  /// Nanoseconds since 1970.
  var began: UInt64
  var ended: UInt64 = 0
  var attributes: [String: Attribute] = [:]
  /// The message of the span's error; `nil` without one.
  var error: String?

  /// Records the span with the worker's tracer.
  ///
  /// - `isPreview`: whether the span belongs to a preview.
  func replay(to tracer: any Tracer, in context: ServiceContext, isPreview: Bool) {
    let span = tracer.startSpan(name, context: context, ofKind: .internal, at: Moment(nanosecondsSinceEpoch: began))
    for (key, value) in attributes {
      switch value {
      case .integer(let integer): span.attributes[key] = integer
      case .flag(let flag): span.attributes[key] = flag
      case .number(let number): span.attributes[key] = number
      case .text(let text): span.attributes[key] = text
      }
    }
    if isPreview { span.attributes["imageworker.is_preview"] = true }
    if let error { span.setStatus(SpanStatus(code: .error, message: error)) }
    span.end(at: Moment(nanosecondsSinceEpoch: max(began, ended)))
  }

  private struct Moment: TracerInstant {
    var nanosecondsSinceEpoch: UInt64
    static func < (a: Moment, b: Moment) -> Bool { a.nanosecondsSinceEpoch < b.nanosecondsSinceEpoch }
  }
}

extension RecordedSpan {
  func write(to writer: inout WireWriter) {
    writer.string(1, name)
    writer.fixed64(2, began)
    writer.fixed64(3, ended)
    if let error { writer.string(4, error, isPresent: true) }
    for (key, value) in attributes {
      writer.message(5) {
        $0.string(1, key)
        switch value {
        case .integer(let integer): $0.fixed64(2, UInt64(bitPattern: integer), isPresent: true)
        case .flag(let flag): $0.varint(3, flag ? 1 : 0, isPresent: true)
        case .number(let number): $0.fixed64(4, number.bitPattern, isPresent: true)
        case .text(let text): $0.string(5, text, isPresent: true)
        }
      }
    }
  }

  init(_ message: WireMessage) {
    self.init(
      name: message.text(1) ?? "", began: min(message.integer(2), UInt64(Int64.max)),
      ended: min(message.integer(3), UInt64(Int64.max)), error: message.text(4))
    for attribute in message.messages(5) {
      guard let key = attribute.text(1) else { continue }
      if attribute.has(2) {
        attributes[key] = .integer(Int64(bitPattern: attribute.integer(2)))
      } else if attribute.has(3) {
        attributes[key] = .flag(attribute.flag(3))
      } else if attribute.has(4) {
        attributes[key] = .number(Double(bitPattern: attribute.integer(4)))
      } else {
        attributes[key] = .text(attribute.text(5) ?? "")
      }
    }
  }
}

/// A tracer that keeps ended spans until they are taken.
final class SpanRecorder: Tracer {
  private let ended = Mutex<[RecordedSpan]>([])

  /// Removes and returns the spans that have ended.
  func take() -> [RecordedSpan] {
    ended.withLock { spans in
      defer { spans = [] }
      return spans
    }
  }

  func startSpan<Instant: TracerInstant>(
    _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
    at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
  ) -> RecorderSpan {
    RecorderSpan(
      RecordedSpan(name: operationName, began: instant().nanosecondsSinceEpoch), context: context(), recorder: self)
  }

  fileprivate func keep(_ span: RecordedSpan) { ended.withLock { $0.append(span) } }

  func forceFlush() {}
  func extract<Carrier, Extract: Extractor>(
    _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
  ) where Extract.Carrier == Carrier {}
  func inject<Carrier, Inject: Injector>(
    _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
  ) where Inject.Carrier == Carrier {}
}

/// A span of a `SpanRecorder`.
final class RecorderSpan: Span {
  private struct State {
    var record: RecordedSpan
    var attributes = SpanAttributes()
  }

  let context: ServiceContext
  private let recorder: SpanRecorder
  private let state: Mutex<State>

  fileprivate init(_ record: RecordedSpan, context: ServiceContext, recorder: SpanRecorder) {
    self.context = context
    self.recorder = recorder
    state = Mutex(State(record: record))
  }

  var isRecording: Bool { true }

  var operationName: String {
    get { state.withLock { $0.record.name } }
    set { state.withLock { $0.record.name = newValue } }
  }

  var attributes: SpanAttributes {
    get { state.withLock { $0.attributes } }
    set { state.withLock { $0.attributes = newValue } }
  }

  func setStatus(_ status: SpanStatus) {
    state.withLock { $0.record.error = status.code == .error ? status.message ?? "" : nil }
  }

  func addEvent(_ event: SpanEvent) {}
  func addLink(_ link: SpanLink) {}
  func recordError<Instant: TracerInstant>(
    _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
  ) {}

  func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
    let ended = instant().nanosecondsSinceEpoch
    recorder.keep(
      state.withLock { state in
        var record = state.record
        record.ended = ended
        state.attributes.forEach { key, value in record.attributes[key] = RecordedSpan.Attribute(value) }
        return record
      })
  }
}

extension RecordedSpan.Attribute {
  fileprivate init(_ value: SpanAttribute) {
    switch value {
    case .int32(let integer): self = .integer(Int64(integer))
    case .int64(let integer): self = .integer(integer)
    case .bool(let flag): self = .flag(flag)
    case .double(let number): self = .number(number)
    case .string(let text): self = .text(text)
    default: self = .text("\(value)")
    }
  }
}
