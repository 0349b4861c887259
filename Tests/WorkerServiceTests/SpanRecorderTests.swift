import InMemoryTracing
import Testing
import Tracing

@testable import WorkerService

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
    let records = recorder.take()
    #expect(records.map(\.name) == ["inner", "outer"] && recorder.take().isEmpty)
    #expect(records[0].attributes == ["imageworker.busy_ns": .integer(12)])
    #expect(records[1].began <= records[0].began)
    #expect(records[0].began <= records[0].ended)
    #expect(records[0].ended <= records[1].ended)
    let passed = base.finishedSpans
    #expect(passed.map(\.operationName) == ["inner", "outer"])
    #expect(passed[0].attributes.get("imageworker.busy_ns") == .int64(12))
    #expect(passed[0].spanContext.parentSpanID == passed[1].spanContext.spanID)
  }

  @Test("spans of helpers are small, or refused")
  func sizes() {
    let long = String(repeating: "x", count: 1025)
    var span = RecordedSpan(name: "decode", began: 1)
    span.attributes = ["imageworker.filters": .text(String(long.dropLast())), "imageworker.busy_ns": .integer(1)]
    #expect(span.isPlausible)
    let changes: [(inout RecordedSpan) -> Void] = [
      { $0.name = long }, { $0.error = long }, { $0.attributes[long] = .flag(true) },
      { $0.attributes["a"] = .text(long) },
      { span in for index in 0..<16 { span.attributes["\(index)"] = .integer(0) } },
    ]
    for change in changes {
      var changed = span
      change(&changed)
      #expect(!changed.isPlausible)
    }
  }

  @Test("records spans of a trace that is not sampled")
  func unsampled() {
    let recorder = SpanRecorder(base: NoOpTracer())
    let span = recorder.startSpan("decode")
    span.attributes["imageworker.is_preview"] = true
    span.end()
    #expect(recorder.take().map(\.attributes) == [["imageworker.is_preview": .flag(true)]])
  }
}
