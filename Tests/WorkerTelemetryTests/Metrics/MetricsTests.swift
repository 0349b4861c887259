import CoreMetrics
import Testing
import Tracing
import WorkerProtocol

@testable import WorkerTelemetry

@Suite("Metrics")
struct MetricsTests {
  private let catalog = [
    MetricDescription(name: "a.count", unit: "{thing}", kind: .counter, help: "Things \\ of\nuse"),
    MetricDescription(name: "b.time", unit: "s", kind: .histogram(bounds: [0.5, 1]), help: "How long"),
    MetricDescription(name: "c.size", unit: "By", kind: .gauge, help: "How large"),
    MetricDescription(name: "d.volume", unit: "By", kind: .histogram(bounds: [10]), help: "How much"),
  ]

  @Test("are exposed to Prometheus under its names, with help, types and cumulative buckets")
  func text() {
    let registry = MetricRegistry(catalog: catalog)
    let counter = Counter(label: "a.count", dimensions: [("z.b", "x\"y\\\n"), ("a", "1")], factory: registry)
    counter.increment(by: 2)
    Counter(label: "a.count", dimensions: [("a", "1"), ("z.b", "x\"y\\\n")], factory: registry).increment(by: 1)
    for milliseconds in [250, 500, 750, 4000] {
      Timer(label: "b.time", dimensions: [], factory: registry).recordMilliseconds(milliseconds)
    }
    registry.observe("c.size") { 1.5 }
    Recorder(label: "d.volume", dimensions: [], aggregate: true, factory: registry).record(11)
    registry.observe("c.size", [.init("of", "it")]) { 7 }
    #expect(
      PrometheusText.format(registry.collect()) == """
        # HELP a_count_total Things \\\\ of\\nuse.
        # TYPE a_count_total counter
        a_count_total{a="1",z_b="x\\"y\\\\\\n"} 3
        # HELP b_time_seconds How long.
        # TYPE b_time_seconds histogram
        b_time_seconds_bucket{le="0.5"} 2
        b_time_seconds_bucket{le="1"} 3
        b_time_seconds_bucket{le="+Inf"} 4
        b_time_seconds_sum 5.5
        b_time_seconds_count 4
        # HELP c_size_bytes How large.
        # TYPE c_size_bytes gauge
        c_size_bytes 1.5
        c_size_bytes{of="it"} 7
        # HELP d_volume_bytes How much.
        # TYPE d_volume_bytes histogram
        d_volume_bytes_bucket{le="10"} 0
        d_volume_bytes_bucket{le="+Inf"} 1
        d_volume_bytes_sum 11
        d_volume_bytes_count 1

        """)
  }

  @Test("are exposed as OpenMetrics with exemplars of recorded traces, to clients that ask for it")
  func openMetrics() throws {
    let registry = MetricRegistry(catalog: catalog)
    Counter(label: "a.count", dimensions: [], factory: registry).increment(by: 2)
    let timer = Timer(label: "b.time", dimensions: [("k", "v")], factory: registry)
    timer.recordMilliseconds(100)
    let trace = "0af7651916cd43dd8448eb211c80319c"
    for (milliseconds, span, isSampled) in [(750, 1, true), (800, 2, true), (900, 3, false), (4000, 4, true)] {
      var context = InstrumentationContext.topLevel
      context.spanContext = SpanContext(traceparent: "00-\(trace)-000000000000000\(span)-0\(isSampled ? 1 : 0)")
      InstrumentationContext.$current.withValue(context) { timer.recordMilliseconds(milliseconds) }
    }
    let text = PrometheusText.format(registry.collect(), as: .openMetrics)
    #expect(text.contains("# TYPE a_count counter\na_count_total 2\n") && text.hasSuffix("# EOF\n"))
    #expect(text.contains("b_time_seconds_bucket{k=\"v\",le=\"0.5\"} 1\n"))
    let second = try #require(text.split(separator: "\n").first { $0.contains("le=\"1.0\"") })
    // The last recorded one; the time is that of the test.
    #expect(
      second.hasPrefix(
        "b_time_seconds_bucket{k=\"v\",le=\"1.0\"} 4 # {trace_id=\"\(trace)\",span_id=\"0000000000000002\"} 0.8 "))
    let time = try #require(second.split(separator: " ").last.flatMap { Double($0) })
    #expect(abs(time - Double(DefaultTracerClock.now.nanosecondsSinceEpoch) / 1e9) < 3600)
    #expect(text.contains("le=\"+Inf\"} 5 # {trace_id=\"\(trace)\",span_id=\"0000000000000004\"} 4 "))
    #expect(!PrometheusText.format(registry.collect()).contains("trace_id"))
  }

  @Test(
    "are exposed in the format that a client prefers",
    arguments: [
      ([], .text), ([""], .text), (["*/*"], .text), (["text/html"], .text),
      (["application/openmetrics-text"], .openMetrics),
      (
        [
          "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
            + "text/plain;version=1.0.0;q=0.3,*/*;q=0.2"
        ], .openMetrics
      ),
      (["application/openmetrics-text; version=2.0.0, text/plain; q=0.1"], .text),
      (["application/openmetrics-text;q=0.1", "text/plain;version=0.0.4"], .text),
      (["application/openmetrics-text;q=0"], .text), (["application/openmetrics-text;q=x,text/plain;q=0.1"], .text),
    ] as [([String], PrometheusText.Format)])
  func accept(headers: [String], expected: PrometheusText.Format) {
    #expect(PrometheusText.Format(accept: headers) == expected)
  }

  @Test("count exactly when many threads measure")
  func concurrent() async {
    let registry = MetricRegistry(catalog: catalog)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<1000 { Counter(label: "a.count", dimensions: [], factory: registry).increment() }
        }
      }
    }
    #expect(registry.collect().first?.series.first?.value == .counter(8000))
  }

  @Test("are merged beyond the maximum number of series, without loss")
  func overflow() {
    let registry = MetricRegistry(catalog: catalog, maxSeries: 10)
    for index in 0..<100 {
      Counter(label: "a.count", dimensions: [("i", "\(index)")], factory: registry).increment()
    }
    let series = registry.collect().first?.series ?? []
    let total = series.reduce(0.0) { total, one in
      if case .counter(let value) = one.value { total + value } else { total }
    }
    #expect(series.count == 11 && total == 100)
    #expect(series.contains { $0.dimensions == [.init("otel.metric.overflow", "true")] && $0.value == .counter(90) })
  }

  @Test("measure for nobody when they are not of the catalog, or of another kind")
  func unknown() {
    let registry = MetricRegistry(catalog: catalog)
    Counter(label: "no.such", dimensions: [], factory: registry).increment()
    Counter(label: "c.size", dimensions: [], factory: registry).increment()
    Timer(label: "a.count", dimensions: [], factory: registry).recordNanoseconds(1)
    Meter(label: "b.time", dimensions: [], factory: registry).set(1)
    #expect(registry.collect().isEmpty)
  }

  @Test("never decrease a counter")
  func monotonic() {
    let registry = MetricRegistry(catalog: catalog)
    let counter = FloatingPointCounter(label: "a.count", dimensions: [], factory: registry)
    counter.increment(by: 1.5)
    counter.increment(by: -1.0)
    counter.increment(by: Double.nan)
    #expect(registry.collect().first?.series.first?.value == .counter(1.5))
  }

  @Test("have names of their own in the catalog, whichever way they are spelled")
  func catalogNames() {
    let all = MetricCatalog.all
    #expect(Set(all.map(\.name)).count == all.count && Set(all.map(\.prometheusName)).count == all.count)
    #expect(all.allSatisfy { !$0.help.isEmpty && !$0.help.hasSuffix(".") })
  }

  @Test("report the system's values for the process")
  func process() {
    let registry = MetricRegistry()
    registry.observeProcess()
    let values = Dictionary(
      uniqueKeysWithValues: registry.collect().map { ($0.description.name, $0.series.first?.value) })
    guard case .gauge(let memory) = values["process.memory.usage"],
      case .gauge(let threads) = values["process.threads"], case .counter(let cpu) = values["process.cpu.time"]
    else {
      Issue.record("\(values)")
      return
    }
    #expect(memory > 1_000_000 && threads >= 1 && cpu > 0)
  }

  @Test("are exported as cumulative values with their bounds and attributes")
  func otlp() throws {
    let registry = MetricRegistry(catalog: catalog)
    Counter(label: "a.count", dimensions: [("k", "v")], factory: registry).increment(by: 3)
    Timer(label: "b.time", dimensions: [], factory: registry).recordMilliseconds(750)
    let request = OTLPMetricsRequest(
      registry.collect(), MetricPeriod(start: 1, end: 2), resource: OTLPResource([("r", "s")]))
    let all = try #require(request.resourceMetrics.first)
    #expect(all.resource.attributes.map(\.key) == ["r"] && all.schemaURL.hasSuffix(SemanticConventions.version))
    let metrics = try #require(all.scopeMetrics.first?.metrics)
    #expect(metrics.map(\.name) == ["a.count", "b.time"] && metrics.map(\.unit) == ["{thing}", "s"])
    let point = try #require(metrics[0].sum.dataPoints.first)
    #expect(metrics[0].sum.isMonotonic && metrics[0].sum.aggregationTemporality == .cumulative)
    #expect(point.asDouble == 3 && point.attributes.first?.value.stringValue == "v")
    #expect(point.startTimeUnixNano == 1 && point.timeUnixNano == 2)
    let histogram = try #require(metrics[1].histogram.dataPoints.first)
    #expect(histogram.explicitBounds == [0.5, 1] && histogram.bucketCounts == [0, 1, 0] && histogram.sum == 0.75)
  }
}
