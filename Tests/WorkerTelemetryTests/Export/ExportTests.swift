import GRPCCore
import GRPCProtobuf
import Logging
import Synchronization
import Testing

@testable import WorkerTelemetry

@Suite("Export", .timeLimit(.minutes(15)))
struct ExportTests {
  private func queue(capacity: Int = 10, batchSize: Int = 4) -> BatchQueue<[Int]> {
    BatchQueue(capacity: capacity, batchSize: batchSize, counts: ExportCounts())
  }

  @Test("a queue returns full batches in order, and the rest when flushed or closed")
  func batches() {
    let queue = queue()
    for element in 0..<9 { queue.offer(element) }
    #expect(queue.take() == [0, 1, 2, 3] && queue.take() == [4, 5, 6, 7] && queue.take() == nil)
    queue.flush()
    #expect(queue.take() == [8] && queue.take() == nil)
    queue.offer(9)
    #expect(queue.take() == nil)
    queue.close()
    #expect(queue.take() == [9] && queue.take() == nil)
  }

  @Test("a queue never exceeds its capacity, and counts dropped elements")
  func bounded() {
    let queue = queue()
    for element in 0..<25 { queue.offer(element) }
    #expect(queue.count == 10 && queue.counts.dropped == [.queueFull: 15])
    queue.close()
    queue.offer(0)
    #expect(queue.count == 10 && queue.counts.dropped == [.queueFull: 16])
  }

  @Test("a removed batch frees its capacity, and elements after a flush wait for the next one")
  func room() {
    let queue = queue()
    for element in 0..<10 { queue.offer(element) }
    #expect(queue.take() == [0, 1, 2, 3])
    for element in 10..<20 { queue.offer(element) }
    #expect(queue.count == 10 && queue.counts.dropped == [.queueFull: 6])
    queue.flush()
    #expect(queue.take() == [4, 5, 6, 7] && queue.take() == [8, 9, 10, 11] && queue.take() == [12, 13])
    #expect(queue.take() == nil)
    queue.offer(20)
    #expect(queue.take() == nil && queue.count == 1)
  }

  @Test("everything offered before the queue was closed is sent once, in batches of at most the batch size")
  func everything() async {
    let queue = queue(capacity: 100_000, batchSize: 64)
    let sent = Mutex<[[Int]]>([])
    let exporter = BatchExporter(queue: queue, delay: .milliseconds(3), flushLimit: .seconds(60)) { batch in
      sent.withLock { $0.append(batch) }
    }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await exporter.run() }
      group.addTask {
        await withTaskGroup(of: Void.self) { offering in
          for start in 0..<8 {
            offering.addTask { for index in 0..<1000 { queue.offer(start * 1000 + index) } }
          }
        }
        queue.close()
      }
    }
    let batches = sent.withLock { $0 }
    #expect(batches.joined().sorted() == Array(0..<8000) && batches.allSatisfy { (1...64).contains($0.count) })
    #expect(queue.counts.dropped.isEmpty)
  }

  @Test("a partial batch is sent after the delay, without a close")
  func delay() async {
    let queue = queue()
    let (sent, send) = AsyncStream<[Int]>.makeStream()
    let exporter = BatchExporter(queue: queue, delay: .milliseconds(5), flushLimit: .zero) { send.yield($0) }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await exporter.run() }
      queue.offer(7)
      var batches = sent.makeAsyncIterator()
      #expect(await batches.next() == [7])
      queue.close()
    }
  }

  @Test("a hanging collector delays the last flush up to its limit; the rest is counted as dropped")
  func hanging() async {
    let queue = queue()
    let began = Mutex(false)
    let exporter = BatchExporter(queue: queue, delay: .seconds(3600), flushLimit: .milliseconds(20)) { batch in
      began.withLock { $0 = true }
      try? await Task.sleep(for: .seconds(3600))
      queue.counts.drop(batch.count, because: .shutdown)
    }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await exporter.run() }
      for element in 0..<10 { queue.offer(element) }
      for _ in 0..<20_000 where !began.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(1)) }
      #expect(began.withLock { $0 })
      queue.close()
    }
    #expect(queue.counts.dropped == [.shutdown: 10])
  }

  @Test("retries only errors that the specification calls retryable", arguments: 1...16)
  func retryable(code: Int) throws {
    let rpcCode = try #require(Status.Code(rawValue: code).flatMap { RPCError.Code($0) })
    let retryable: [RPCError.Code] = [.cancelled, .deadlineExceeded, .aborted, .outOfRange, .unavailable, .dataLoss]
    let delay = OTLPRetry().delay(after: RPCError(code: rpcCode, message: ""), attempt: 1)
    #expect((delay != nil) == retryable.contains(rpcCode))
  }

  @Test("waits as long as the collector requests, and retries RESOURCE_EXHAUSTED only on request")
  func throttled() {
    func delay(_ code: RPCError.Code, asking delay: Duration) -> Duration? {
      let status = GoogleRPCStatus(code: code, message: "", details: [.retryInfo(delay: delay)])
      let error = RPCError(code: code, message: "", metadata: RPCError(status).metadata)
      return OTLPRetry().delay(after: error, attempt: 1)
    }
    #expect(delay(.resourceExhausted, asking: .seconds(7)) == .seconds(7))
    #expect(delay(.unavailable, asking: .seconds(9)) == .seconds(9))
    #expect(delay(.invalidArgument, asking: .seconds(9)) == nil)
  }

  @Test("increases the delay with each attempt, up to a limit")
  func backoff() throws {
    let retry = OTLPRetry()
    let error = RPCError(code: .unavailable, message: "")
    for attempt in 1...40 {
      let delay = try #require(retry.delay(after: error, attempt: attempt))
      let maximum = min(retry.maxDelay, retry.initialDelay * (1 << min(attempt - 1, 16)))
      #expect(delay <= maximum && delay >= maximum / 2)
    }
  }

  @Test("gives up when the time for all attempts together is over, with the last error")
  func timeout() async {
    let attempts = Mutex(0)
    let error = await #expect(throws: RPCError.self) {
      try await OTLPRetry(initialDelay: .milliseconds(2), maxDelay: .milliseconds(4))
        .run(timeout: .milliseconds(60)) { timeLeft in
          attempts.withLock { $0 += 1 }
          #expect(timeLeft <= .milliseconds(60))
          throw RPCError(code: .unavailable, message: "down")
        }
    }
    #expect(error?.message == "down" && attempts.withLock { $0 } > 1)
  }

  @Test("counts no more elements as rejected than were sent", arguments: [Int64.min, -1, 0, 3, 5, 6, .max])
  func rejections(_ claimed: Int64) async throws {
    let counts = ExportCounts()
    let configuration = TelemetryConfiguration(environment: ["OTEL_EXPORTER_OTLP_ENDPOINT": "http://a"])
    let exporter = OTLPExporter(
      .traces, try #require(configuration.exports[.traces]), counts: counts, logger: Logger(label: "test"))
    for _ in 0..<2 { await exporter.send(count: 5) { _, _ in .init(rejectedCount: claimed, message: "") } }
    let rejected = claimed <= 0 ? 0 : claimed >= 5 ? 10 : 6
    #expect(counts.exported == 10 - rejected && counts.dropped[.rejected, default: 0] == rejected)
  }

  @Test("counts elements that the collector accepted, rejected, or never answered")
  func counts() async throws {
    let counts = ExportCounts()
    let configuration = TelemetryConfiguration(environment: [
      "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_HEADERS": "k=v",
      "OTEL_EXPORTER_OTLP_TIMEOUT": "20",
    ])
    let lines = Mutex<[String]>([])
    let logger = Logger(label: "test") { label in
      WorkerLogHandler(label: label, format: .text) { line in lines.withLock { $0.append(line) } }
    }
    let export = try #require(configuration.exports[.traces])
    let exporter = OTLPExporter(.traces, export, counts: counts, logger: logger)
    await exporter.send(count: 5) { metadata, options in
      #expect(Array(metadata[stringValues: "k"]) == ["v"] && options.timeout != nil)
      return .init(rejectedCount: 2, message: "two are odd")
    }
    #expect(counts.exported == 3 && counts.dropped == [.rejected: 2])
    for _ in 0..<3 {
      await exporter.send(count: 4) { _, _ in throw RPCError(code: .unavailable, message: "down") }
    }
    #expect(counts.exported == 3 && counts.dropped == [.rejected: 2, .exportFailed: 12])
    await exporter.send(count: 1) { _, _ in .init(rejectedCount: 0, message: "") }
    // One line each for the rejected elements, for the start of the failure, and for its end.
    let told = lines.withLock { $0 }
    #expect(told.count == 3 && told[0].contains("two are odd") && told[1].contains("does not accept"))
    #expect(told.last?.contains("again") == true)
  }
}
