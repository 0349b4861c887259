import Synchronization
import TestSupport
import Testing
import Tracing

@testable import WorkerTelemetry

@Suite("RecordingTracer")
struct RecordingTracerTests {
  private final class Sink: Sendable {
    private let all = Mutex<[FinishedSpan]>([])
    var spans: [FinishedSpan] { all.withLock { $0 } }
    func take(_ span: FinishedSpan) { all.withLock { $0.append(span) } }
  }

  private struct Failure: Error {}

  private func remote(sampled: Bool) throws -> ServiceContext {
    var context = ServiceContext.topLevel
    context.spanContext = SpanContext(
      traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0\(sampled ? 1 : 0)")
    return context
  }

  @Test("passes ended spans to its sink once, children below their parents")
  func tree() throws {
    let sink = Sink()
    let tracer = RecordingTracer(sink: sink.take)
    let parent = tracer.startSpan("parent", context: .topLevel, ofKind: .server)
    let child = tracer.startSpan("child", context: parent.context)
    #expect(sink.spans.isEmpty && child.isRecording)
    child.attributes["n"] = 1
    child.recordError(Failure())
    child.addLink(SpanLink(context: parent.context, attributes: [:]))
    child.setStatus(SpanStatus(code: .error, message: "m"))
    child.end()
    child.end()
    child.attributes["n"] = 2
    #expect(!child.isRecording)
    parent.operationName = "renamed"
    parent.end()
    let spans = sink.spans
    try #require(spans.map(\.name) == ["child", "renamed"])
    #expect(spans[0].context.traceID == spans[1].context.traceID && spans[0].context.spanID != spans[1].context.spanID)
    #expect(spans[0].parent == spans[1].context && spans[1].parent == nil && spans[1].kind == .server)
    #expect(spans[0].attributes.get("n") == 1 && spans[0].status?.code == .error)
    #expect(spans[0].events.map(\.name) == ["exception"] && spans[0].links.count == 1)
    #expect(spans.allSatisfy { $0.end >= $0.start && $0.start > 0 })
  }

  @Test("limits the contents of a span, and counts what is dropped")
  func bounds() throws {
    let sink = Sink()
    let span = RecordingTracer(sink: sink.take).startSpan("s", context: .topLevel)
    for index in 0..<200 {
      span.attributes["a\(index)"] = index
      span.addEvent(SpanEvent(name: "e"))
      span.addLink(SpanLink(context: span.context, attributes: [:]))
    }
    span.end()
    let ended = try #require(sink.spans.first)
    #expect(ended.attributes.count == 128 && ended.droppedAttributeCount == 72)
    #expect(ended.events.count == 128 && ended.droppedEventCount == 72)
    #expect(ended.links.count == 128 && ended.droppedLinkCount == 72)
  }

  @Test("follows the caller's decision, and decides if there is none", arguments: [true, false])
  func parentBased(sampled: Bool) throws {
    for root in [Sampler.alwaysOn, .alwaysOff] {
      let sink = Sink()
      let tracer = RecordingTracer(sampler: .parentBased(root: root), sink: sink.take)
      let context = try remote(sampled: sampled)
      let child = tracer.startSpan("child", context: context)
      child.end()
      #expect(sink.spans.count == (sampled ? 1 : 0))
      #expect(child.context.spanContext?.isSampled == sampled)
      #expect(child.context.spanContext?.traceID.description == "4bf92f3577b34da6a3ce929d0e0e4736")
      #expect(sink.spans.first?.parent?.isRemote == (sampled ? true : nil))
      tracer.startSpan("root", context: .topLevel).end()
      #expect(sink.spans.count == (sampled ? 1 : 0) + (root == .alwaysOn ? 1 : 0))
    }
  }

  @Test("passes the caller's context on unchanged when nothing is recorded")
  func passThrough() throws {
    let tracer = RecordingTracer(sink: nil)
    let context = try remote(sampled: true)
    #expect(tracer.startSpan("s", context: context).context.spanContext == context.spanContext)
    #expect(tracer.startSpan("s", context: .topLevel).context.spanContext == nil)
  }

  @Test("samples by the trace id: a smaller fraction is a subset of a larger one")
  func ratio() {
    var random = SeededGenerator(seed: 1)
    let ids = (0..<20_000).map { _ in TraceID(high: random.next(), low: random.next()) }
    func chosen(_ ratio: Double) -> Set<TraceID> {
      Set(ids.filter { Sampler.traceIDRatio(ratio).isSampled($0, parent: nil) })
    }
    #expect(chosen(0).isEmpty && chosen(1).count == ids.count)
    // Three standard deviations.
    #expect(abs(chosen(0.1).count - 2000) < 128)
    #expect(chosen(0.1).isSubset(of: chosen(0.3)))
  }

  @Test("creates distinct, nonzero identifiers on every thread")
  func identifiers() async {
    let all = await withTaskGroup(of: [TraceID].self) { group in
      for _ in 0..<4 { group.addTask { (0..<1000).map { _ in TraceID.random() } } }
      return await group.reduce(into: [TraceID]()) { $0 += $1 }
    }
    #expect(Set(all).count == 4000 && !all.contains(TraceID(high: 0, low: 0)))
  }

  @Test(
    "knows the samplers by their names",
    arguments: [
      (nil, nil, .parentBased(root: .alwaysOn), 0), ("always_on", nil, .alwaysOn, 0),
      ("always_off", nil, .alwaysOff, 0),
      ("traceidratio", "0.25", .traceIDRatio(0.25), 0), ("traceidratio", nil, .traceIDRatio(1), 0),
      ("parentbased_always_on", nil, .parentBased(root: .alwaysOn), 0),
      ("parentbased_always_off", nil, .parentBased(root: .alwaysOff), 0),
      ("parentbased_traceidratio", "0", .parentBased(root: .traceIDRatio(0)), 0),
      ("traceidratio", "2", .traceIDRatio(1), 1), ("traceidratio", "half", .traceIDRatio(1), 1),
      ("jaeger_remote", nil, .parentBased(root: .alwaysOn), 1),
    ] as [(String?, String?, Sampler, Int)])
  func names(name: String?, argument: String?, sampler: Sampler, warningCount: Int) {
    var warnings: [String] = []
    #expect(Sampler(name: name, argument: argument) { warnings.append($0) } == sampler)
    #expect(warnings.count == warningCount)
  }
}
