import Testing
import Tracing

@testable import WorkerTelemetry

@Suite("Trace context")
struct SpanContextTests {
  private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
  private static let span = "00f067aa0ba902b7"

  @Test("reads a traceparent and writes it unchanged", arguments: ["00", "01", "02", "03"])
  func roundTrip(flags: String) throws {
    let text = "00-\(Self.trace)-\(Self.span)-\(flags)"
    let context = try #require(SpanContext(traceparent: text))
    #expect(context.traceID.description == Self.trace && context.spanID.description == Self.span)
    #expect(context.isRemote && context.isSampled == (flags == "01" || flags == "03"))
    #expect(context.traceparent == text)
    #expect(Array(context.traceID.bytes).count == 16 && Array(context.spanID.bytes).first == 0x00)
  }

  @Test("reads the known fields of a later version, and drops unknown flags")
  func laterVersion() {
    let context = SpanContext(traceparent: "cc-\(Self.trace)-\(Self.span)-ff-what-the-future-will-be-like")
    #expect(context?.traceparent == "00-\(Self.trace)-\(Self.span)-03")
  }

  @Test(
    "refuses what is malformed",
    arguments: [
      "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-", "00-\(trace)-\(span)-1", "00-\(trace)-\(span)-0g",
      "00-\(trace)-\(span)-01-", "00-\(trace)-\(span)-01-more", "ff-\(trace)-\(span)-01", "0-\(trace)-\(span)-01",
      "00-\(trace.uppercased())-\(span)-01", "00-\(trace)-\(span.uppercased())-01",
      "00-\(String(repeating: "0", count: 32))-\(span)-01", "00-\(trace)-0000000000000000-01",
      "00-\(trace.dropLast())-\(span)-01", "00-\(trace)0-\(span)-01", " 00-\(trace)-\(span)-01",
      "00-\(trace)-\(span)-01,00-\(trace)-\(span)-01", "00-+\(trace.dropFirst())-\(span)-01",
    ])
  func malformed(text: String) {
    #expect(SpanContext(traceparent: text) == nil)
  }

  @Test(
    "keeps a trace state that is well-formed and drops one that is not",
    arguments: [
      ("a=1,b=2", "a=1,b=2"), (" a=1 , ,b=2\t", "a=1,b=2"), ("tenant@system=x y", "tenant@system=x y"),
      ("0a/b*c_d-e=v", "0a/b*c_d-e=v"), ("", ""), ("a", ""), ("A=1", ""), ("a=1,a=2", ""), ("a=", ""), ("a=b=c", ""),
      ("a@b@c=1", ""), ("=1", ""), ("a=\u{e9}", ""), ("@b=1", ""),
    ])
  func traceState(header: String, kept: String) {
    #expect(TraceState(header: header).description == kept)
  }

  @Test("keeps at most 32 members of a trace state")
  func longTraceState() {
    func header(_ count: Int) -> String { (0..<count).map { "k\($0)=v" }.joined(separator: ",") }
    #expect(TraceState(header: header(32)).description == header(32))
    #expect(TraceState(header: header(33)).description.isEmpty)
    // Members that follow 512 bytes are left out.
    let large = "a=" + String(repeating: "v", count: 250)
    #expect(TraceState(header: "\(large),b\(large),c\(large),d=1").description == "\(large),b\(large)")
  }

  @Test("reads the context of a call's headers, if it should", arguments: [true, false])
  func extraction(readsTraceContext: Bool) {
    let traceparent = "00-\(Self.trace)-\(Self.span)-01"
    let tracer = RecordingTracer(readsTraceContext: readsTraceContext, sink: nil)
    var context = ServiceContext.topLevel
    tracer.extract(
      ["traceparent": traceparent, "tracestate": "x=1,y=2", "other": "z"], into: &context, using: Headers())
    #expect(context.spanContext?.traceparent == (readsTraceContext ? traceparent : nil))
    #expect(context.spanContext?.state.description == (readsTraceContext ? "x=1,y=2" : nil))
  }

  private struct Headers: Extractor {
    func extract(key: String, from headers: [String: String]) -> String? { headers[key] }
  }
}

extension SpanContext {
  /// The header of the context.
  fileprivate var traceparent: String { "00-\(traceID)-\(spanID)-0\(flags.rawValue)" }
}
