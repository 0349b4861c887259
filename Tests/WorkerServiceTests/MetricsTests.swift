import CoreMetrics
import ImageCodecs
import Logging
import ResultCache
import Synchronization
import TestSupport
import Testing
import Tracing
import WorkerProtocol
import WorkerTelemetry

@Suite("Metrics of images")
struct MetricsTests {
  /// Returns the values of counters and the counts of histograms, by name and dimension values.
  private func totals(_ registry: MetricRegistry) -> [String: Double] {
    var totals: [String: Double] = [:]
    for family in registry.collect() {
      for series in family.series {
        let name = ([family.description.name] + series.dimensions.map(\.value)).joined(separator: " ")
        switch series.value {
        case .counter(let value), .gauge(let value): totals[name] = value
        case .histogram(let value): totals[name] = Double(value.count)
        }
      }
    }
    return totals
  }

  @Test("count images by outcome, and their bytes, pixels and stages by format")
  func outcomes() async throws {
    let registry = MetricRegistry()
    let photo = Fixture.bytes("photo-420.jpg")
    try await withWorker(metrics: registry) { client, _ in
      let result = try await client.process(photo, preset: "favicon") { $0.preferredFormat = .png }
      _ = try? await client.process([1, 2, 3])
      _ = try? await client.process(Array(photo.dropLast(3000)))
      _ = try await client.batch([
        .start("a", preset: "favicon", image: photo), .start("b", preset: "no-such", image: photo),
      ])
      let totals = totals(registry)
      #expect(totals["imageworker.images ok"] == 2)
      #expect(totals["imageworker.images unknown_format"] == 1 && totals["imageworker.refusals unknown_format"] == 1)
      #expect(totals["imageworker.images truncated_image"] == 1)
      #expect(totals["imageworker.refusals truncated_image"] == nil)
      #expect(totals["imageworker.images unknown_preset"] == 1)
      #expect(totals["imageworker.input jpeg"] == Double(2 * (result.report?.inputBytes ?? 0)))
      #expect(totals["imageworker.output png"] == Double(result.bytes.count))
      #expect(totals["imageworker.input.pixels jpeg"] == 76_800)
      #expect(totals["imageworker.output.pixels png"] == 2752)
      #expect(totals["imageworker.stage.duration jpeg decode"] == 2)
      #expect(totals["imageworker.stage.duration png encode"] == 1)
      #expect(totals["imageworker.queue.wait"] == 2 && totals["imageworker.image.memory"] == 2)
    }
  }

  @Test("count what images have waited for")
  func waits() async throws {
    let registry = MetricRegistry()
    let photo = Fixture.bytes("photo-420.jpg")
    try await withWorker(metrics: registry) { client, _ in
      _ = try await client.batch([
        .start("whole", preset: "favicon", image: photo), .start("upload", preset: "favicon"),
        .chunk("upload", photo), .end("upload"),
      ])
    }
    let totals = totals(registry)
    #expect(totals["imageworker.wait.duration input"] == 1 && totals["imageworker.wait.duration helper"] == nil)
  }

  @Test("count the wait for a helper", .enabled(if: Isolated.isSupported, Isolated.absence))
  func helperWaits() async throws {
    let registry = MetricRegistry()
    try await withWorker(metrics: registry, helpers: Isolated.pool()) { client, _ in
      _ = try await client.process(Fixture.bytes("photo-420.jpg"), preset: "favicon")
    }
    #expect(totals(registry)["imageworker.wait.duration helper"] == 1)
  }

  @Test("count the wait for an identical request")
  func resultWaits() async throws {
    let registry = MetricRegistry()
    // It takes longer than the calls need to arrive.
    let photo = try encodedImage(noiseSamples(1024 * 1024 * 3), width: 1024, height: 1024, pixelFormat: .rgb8)
    let cache = try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
    try await withWorker(cache: cache, metrics: registry) { client, _ in
      try await withThrowingTaskGroup { group in
        for _ in 0..<16 { group.addTask { _ = try await client.process(photo, preset: "preview") } }
        try await group.waitForAll()
      }
    }
    let totals = totals(registry)
    #expect(totals["imageworker.wait.duration result", default: 0] > 0)
    #expect(totals["imageworker.cache.requests miss"] == 1)
  }

  @Test("are all of the catalog")
  func catalog() async throws {
    let names = Mutex<Set<String>>([])
    let factory = NamesFactory { name in names.withLock { _ = $0.insert(name) } }
    let photo = Fixture.bytes("photo-420.jpg")
    try await withWorker(metrics: factory) { client, _ in
      _ = try await client.process(photo, preset: "favicon")
      _ = try? await client.process([1, 2, 3])
    }
    let known = Set(MetricCatalog.all.map(\.name))
    #expect(names.withLock { $0.count } > 8 && names.withLock { $0.subtracting(known) }.isEmpty)
  }
}

/// Records the names of requested metrics.
private final class NamesFactory: MetricsFactory {
  private let note: @Sendable (String) -> Void
  private let none = NOOPMetricsHandler.instance

  init(note: @escaping @Sendable (String) -> Void) {
    self.note = note
  }

  func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    note(label)
    return none
  }

  func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    note(label)
    return none
  }

  func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    note(label)
    return none
  }

  func destroyCounter(_ handler: any CounterHandler) {}
  func destroyRecorder(_ handler: any RecorderHandler) {}
  func destroyTimer(_ handler: any TimerHandler) {}
}

@Suite("Traces of images")
struct ImageTraceTests {
  private final class Spans: Sendable {
    private let all = Mutex<[FinishedSpan]>([])
    var ended: [FinishedSpan] { all.withLock { $0 } }
    func take(_ span: FinishedSpan) { all.withLock { $0.append(span) } }
  }

  @Test("name the trace in the report, the caller's if there is one")
  func traceID() async throws {
    let spans = Spans()
    try await withWorker(tracer: RecordingTracer(sink: spans.take)) { client, _ in
      let report = try await client.process(Fixture.bytes("photo-420.jpg"), preset: "favicon").report
      let trace = try #require(report?.traceID)
      #expect(trace.utf8.count == 32 && spans.ended.allSatisfy { $0.context.traceID.description == trace })
      #expect(Set(spans.ended.map(\.name)).isSuperset(of: ["queue", "decode", "resize", "encode"]))
    }
    try await withWorker(tracer: NoOpTracer()) { client, _ in
      let report = try await client.process(Fixture.bytes("photo-420.jpg"), preset: "favicon").report
      #expect(report?.traceID == "")
    }
  }

  @Test("have a span for each item of a batch, with its stages below it and its error on it")
  func items() async throws {
    let spans = Spans()
    let photo = Fixture.bytes("photo-420.jpg")
    try await withWorker(tracer: RecordingTracer(sink: spans.take)) { client, _ in
      _ = try await client.batch([
        .start("good", preset: "favicon", image: photo), .start("bad", preset: "favicon", image: [1, 2, 3]),
      ])
    }
    let server = try #require(spans.ended.first { $0.kind == .server })
    let items = spans.ended.filter { $0.name == "item" }
    #expect(items.count == 2 && items.allSatisfy { $0.parent?.spanID == server.context.spanID })
    let good = try #require(items.first { $0.attributes.get("imageworker.item_id") == "good" })
    let stages = spans.ended.filter { $0.parent?.spanID == good.context.spanID }
    #expect(Set(stages.map(\.name)) == ["queue", "decode", "resize", "encode"] && good.status == nil)
    let encode = try #require(stages.first { $0.name == "encode" })
    #expect(encode.attributes.get("imageworker.peak_memory_bytes") != nil)
    #expect(encode.attributes.get("imageworker.pixels") == (64 * 43).toSpanAttribute())
    let bad = try #require(items.first { $0.attributes.get("imageworker.item_id") == "bad" })
    #expect(bad.status?.code == .error && bad.attributes.get("error.type") == "UNKNOWN_FORMAT")
  }
}
