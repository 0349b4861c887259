import SwiftProtobuf
import Testing
import Tracing
import WorkerProtocol

@testable import WorkerTelemetry

/// Parses the hand-written serialization with generated code.
@Suite("OTLP spans")
struct OTLPSpansTests {
  private typealias Request = Opentelemetry_Proto_Collector_Trace_V1_ExportTraceServiceRequest

  private static func context(_ number: UInt64, flags: SpanContext.Flags = [.sampled, .random]) -> SpanContext {
    SpanContext(traceID: TraceID(high: number << 56, low: number), spanID: SpanID(number), flags: flags)
  }

  private static func span(_ name: String, _ attributes: SpanAttributes = [:]) -> FinishedSpan {
    FinishedSpan(
      name: name, context: context(3), parent: nil, kind: .internal, start: 5, end: 1 << 60, attributes: attributes,
      events: [], links: [], status: nil)
  }

  private func read(_ spans: [FinishedSpan]) throws -> Opentelemetry_Proto_Trace_V1_ResourceSpans {
    let resource =
      try Opentelemetry_Proto_Resource_V1_Resource.with {
        $0.attributes = [.with { $0.key = "service.name" }]
      }.serializedBytes() as [UInt8]
    var batch = OTLPSpanBatch(capacity: 1)
    for span in spans { batch.append(OTLPSpan(span)) }
    #expect(batch.count == spans.count)
    let request = try Request(serializedBytes: OTLPTraceRequest(batch, resource: resource).bytes)
    #expect(request.resourceSpans.count == 1 && request.unknownFields.data.isEmpty)
    return try #require(request.resourceSpans.first)
  }

  @Test("identify the resource and scope")
  func origin() throws {
    let all = try read([])
    #expect(all.resource.attributes.map(\.key) == ["service.name"])
    #expect(all.scopeSpans.map(\.scope.name) == ["image-worker"])
    #expect(all.schemaURL == SemanticConventions.schemaURL && all.scopeSpans[0].schemaURL == all.schemaURL)
  }

  @Test("carry every field")
  func fields() throws {
    var span = Self.span("decode")
    var parent = Self.context(7)
    parent.isRemote = true
    span.parent = parent
    span.context.state = TraceState(header: "vendor=1")
    span.kind = .server
    span.status = SpanStatus(code: .error, message: "BROKEN")
    span.events = [SpanEvent(name: "exception", at: DefaultTracerClock.now, attributes: ["exception.type": "E"])]
    (span.droppedAttributeCount, span.droppedEventCount, span.droppedLinkCount) = (1, 200, 3)
    var linked = ServiceContext.topLevel
    linked.spanContext = Self.context(9, flags: [])
    span.links = [SpanLink(context: linked, attributes: ["a": 1]), SpanLink(context: .topLevel, attributes: [:])]
    let written = try #require(try read([span]).scopeSpans[0].spans.first)
    #expect(Array(written.traceID) == [3] + Array(repeating: 0, count: 14) + [3])
    #expect(Array(written.spanID) == Array(repeating: 0, count: 7) + [3])
    #expect(Array(written.parentSpanID) == Array(repeating: 0, count: 7) + [7])
    #expect(written.name == "decode" && written.kind == .server && written.traceState == "vendor=1")
    #expect(written.startTimeUnixNano == 5 && written.endTimeUnixNano == 1 << 60)
    #expect(written.flags == 0x303)
    #expect(written.status.code == .error && written.status.message == "BROKEN")
    #expect(written.droppedAttributesCount == 1 && written.droppedEventsCount == 200 && written.droppedLinksCount == 3)
    #expect(written.events.map(\.name) == ["exception"] && written.events[0].timeUnixNano > 0)
    #expect(written.events[0].attributes.map(\.value.stringValue) == ["E"])
    #expect(written.links.map { Array($0.spanID).last } == [9] && written.links[0].flags == 0x100)
    #expect(written.links[0].attributes.map(\.value.intValue) == [1])
    #expect(written.unknownFields.data.isEmpty)
  }

  @Test("keep attributes of every kind, empty ones and long ones too")
  func attributes() throws {
    let long = String(repeating: "\u{e9}", count: 70_000)
    var attributes: SpanAttributes = [:]
    attributes["none"] = ""
    attributes["long"] = long
    attributes["zero"] = 0
    attributes["negative"] = -5
    attributes["false"] = false
    attributes["double"] = 0.0
    attributes["integers"] = [1, -2] as [Int64]
    attributes["texts"] = ["x", ""] as [String]
    let pairs = try #require(try read([Self.span("s", attributes)]).scopeSpans[0].spans.first).attributes
    let values = Dictionary(uniqueKeysWithValues: pairs.map { ($0.key, $0.value) })
    #expect(values.count == 8)
    #expect(values["none"]?.value == .stringValue("") && values["long"]?.value == .stringValue(long))
    #expect(values["zero"]?.value == .intValue(0) && values["negative"]?.value == .intValue(-5))
    #expect(values["false"]?.value == .boolValue(false) && values["double"]?.value == .doubleValue(0))
    #expect(values["integers"]?.arrayValue.values.map(\.intValue) == [1, -2])
    #expect(values["texts"]?.arrayValue.values.map(\.value) == [.stringValue("x"), .stringValue("")])
  }

  @Test("are concatenated, whatever their lengths", arguments: [1, 2, 500])
  func batches(count: Int) throws {
    let names = (0..<count).map { String(repeating: "n", count: $0 % 300) + "\($0)" }
    #expect(try read(names.map { Self.span($0) }).scopeSpans[0].spans.map(\.name) == names)
  }
}
