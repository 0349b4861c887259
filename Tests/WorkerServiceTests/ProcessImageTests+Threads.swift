#if os(Linux)
  import Glibc
  import InMemoryTracing
  import Synchronization
  import TestSupport
  import Testing

  extension ProcessImageTests {
    @Test("works only on the image executor's threads")
    func threads() async throws {
      // Only those threads have a higher nice value, and a stage's span starts on the thread that does its work.
      let niceness = Mutex<[Int32]>([])
      let ids = InMemoryTracer.IDGenerator(
        nextTraceID: { "trace" },
        nextSpanID: {
          niceness.withLock { niceness in
            niceness.append(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0))
            return "span-\(niceness.count)"
          }
        })
      try await withWorker(tracer: InMemoryTracer(idGenerator: ids)) { client, _ in
        _ = try await client.process(Fixture.bytes("photo-420.jpg"), preset: "favicon")
      }
      let usual = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
      // The spans of the call and of its wait for a thread; then those of the wait for memory, decode, resize and
      // encode.
      #expect(niceness.withLock { $0 } == [usual, usual] + [Int32](repeating: min(usual + 5, 19), count: 4))
    }
  }
#endif
