import InMemoryTracing
import Testing
import Tracing

@testable import WorkerPlayground

@Suite("Span recorder")
struct SpanRecorderTests {
  @Test("records spans with their times and attributes, and passes them on")
  func records() throws {
    let base = InMemoryTracer()
    let recorder = SpanRecorder(base: base)
    recorder.withSpan("outer") { _ in
      let span = recorder.startSpan("inner")
      span.attributes["imageworker.busy_ns"] = 12
      span.end()
    }
    let records = recorder.records.all
    #expect(records.map(\.name) == ["inner", "outer"])
    #expect(records[0].attributes == ["imageworker.busy_ns": "12"])
    #expect(records[1].start <= records[0].start)
    #expect(records[0].start <= records[0].end)
    #expect(records[0].end <= records[1].end)
    let passed = base.finishedSpans
    #expect(passed.map(\.operationName) == ["inner", "outer"])
    #expect(passed[0].attributes.get("imageworker.busy_ns") == .int64(12))
    #expect(passed[0].spanContext.parentSpanID == passed[1].spanContext.spanID)
  }

  @Test("records spans of a trace that is not sampled")
  func unsampled() {
    let recorder = SpanRecorder(base: NoOpTracer())
    let span = recorder.startSpan("decode")
    span.attributes["imageworker.is_preview"] = true
    span.end()
    #expect(recorder.records.all.map(\.attributes) == [["imageworker.is_preview": "true"]])
  }
}
