internal import ImagePipeline
internal import ProtobufWire
internal import Synchronization
package import Tracing

/// A span that has ended, in a helper or for a page of the playground.
package struct RecordedSpan: Sendable {
  /// A value of an attribute; stages use no others.
  package enum Attribute: Sendable, Hashable, CustomStringConvertible {
    case integer(Int64)
    case flag(Bool)
    case number(Double)
    case text(String)

    package var description: String {
      switch self {
      case .integer(let integer): "\(integer)"
      case .flag(let flag): "\(flag)"
      case .number(let number): "\(number)"
      case .text(let text): text
      }
    }
  }

  /// The name of the operation.
  package var name: String
  /// Nanoseconds since 1970.
  package var began: UInt64
  /// Nanoseconds since 1970, possibly before `began` if the clock was set back.
  package var ended: UInt64 = 0
  /// The attributes by their names.
  package var attributes: [String: Attribute] = [:]
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
  /// The maximum size of each text of a span in bytes, and the maximum number of its attributes.
  private static let (maxTextByteCount, maxAttributeCount) = (1024, 16)

  /// Whether the span is as small as those of stages: spans wait in a queue that counts them, not their bytes.
  var isPlausible: Bool {
    func isShort(_ text: String) -> Bool { text.utf8.count <= Self.maxTextByteCount }
    return isShort(name) && isShort(error ?? "") && attributes.count <= Self.maxAttributeCount
      && attributes.allSatisfy { key, value in
        if case .text(let text) = value { isShort(key) && isShort(text) } else { isShort(key) }
      }
  }

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

/// A tracer that keeps ended spans until they are taken, whether their traces are sampled or not.
package final class SpanRecorder: Tracer {
  private let base: any Tracer
  private let ended = Mutex<[RecordedSpan]>([])

  /// Creates a tracer that also records its spans with `base`.
  package init(base: any Tracer = NoOpTracer()) { self.base = base }

  /// Removes and returns the spans that have ended.
  package func take() -> [RecordedSpan] {
    ended.withLock { spans in
      defer { spans = [] }
      return spans
    }
  }

  package func startSpan<Instant: TracerInstant>(
    _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
    at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
  ) -> RecorderSpan {
    let began = instant()
    let span = base.startSpan(
      operationName, context: context(), ofKind: kind, at: began, function: function, file: fileID, line: line)
    return RecorderSpan(
      RecordedSpan(name: operationName, began: began.nanosecondsSinceEpoch), base: span, recorder: self)
  }

  fileprivate func keep(_ span: RecordedSpan) { ended.withLock { $0.append(span) } }

  /// Does nothing: spans stay until they are taken.
  package func forceFlush() {}

  /// Does nothing: the spans of images are recorded, never that of a call.
  package func extract<Carrier, Extract: Extractor>(
    _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
  ) where Extract.Carrier == Carrier {}

  /// Does nothing: the worker makes no calls that belong to a trace.
  package func inject<Carrier, Inject: Injector>(
    _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
  ) where Inject.Carrier == Carrier {}
}

/// A span of a `SpanRecorder`.
package final class RecorderSpan: Span {
  private struct State {
    var record: RecordedSpan
    // A copy: a span that is not sampled keeps no attributes.
    var attributes = SpanAttributes()
  }

  private let base: any Span
  private let recorder: SpanRecorder
  private let state: Mutex<State>

  fileprivate init(_ record: RecordedSpan, base: any Span, recorder: SpanRecorder) {
    self.base = base
    self.recorder = recorder
    state = Mutex(State(record: record))
  }

  /// The context for work inside the span.
  package var context: ServiceContext { base.context }
  /// Always: also a span that is not sampled is recorded.
  package var isRecording: Bool { true }

  /// The name of the operation.
  package var operationName: String {
    get { state.withLock { $0.record.name } }
    set {
      state.withLock { $0.record.name = newValue }
      base.operationName = newValue
    }
  }

  /// The attributes of the span.
  package var attributes: SpanAttributes {
    get { state.withLock { $0.attributes } }
    set {
      state.withLock { $0.attributes = newValue }
      base.attributes = newValue
    }
  }

  package func setStatus(_ status: SpanStatus) {
    state.withLock { $0.record.error = status.code == .error ? status.message ?? "" : nil }
    base.setStatus(status)
  }

  package func addEvent(_ event: SpanEvent) { base.addEvent(event) }
  package func addLink(_ link: SpanLink) { base.addLink(link) }

  package func recordError<Instant: TracerInstant>(
    _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
  ) {
    base.recordError(error, attributes: attributes, at: instant())
  }

  /// Ends the span and records it.
  package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
    let ended = instant()
    recorder.keep(
      state.withLock { state in
        var record = state.record
        record.ended = ended.nanosecondsSinceEpoch
        state.attributes.forEach { key, value in record.attributes[key] = RecordedSpan.Attribute(value) }
        return record
      })
    base.end(at: ended)
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
