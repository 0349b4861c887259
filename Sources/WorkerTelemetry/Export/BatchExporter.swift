/// Sends a queue's contents in batches: when a batch is full, after a delay, and once more when the queue is closed.
struct BatchExporter<Batch: BatchContents & Sendable>: Sendable where Batch.Element: Sendable {
  let queue: BatchQueue<Batch>
  /// Maximum time that an element waits in the queue while the collector responds.
  let delay: Duration
  /// Time limit for the last flush after the queue is closed.
  let flushLimit: Duration
  /// Sends one batch; returns when the collector has accepted it or the exporter has given up.
  let send: @Sendable (Batch) async -> Void

  /// Exports until the queue is closed and empty, or until the time limit for the last flush has passed.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        for await _ in queue.wake.stream { await sendAll() }
        await sendAll()
      }
      group.addTask {
        for await _ in queue.closing.stream {}
        try? await Task.sleep(for: flushLimit)
      }
      group.addTask { while (try? await Task.sleep(for: delay)) != nil { queue.flush() } }
      // The first task ends when everything is sent, the second when the flush limit has passed, the third never.
      await group.next()
      group.cancelAll()
    }
    queue.counts.drop(queue.count, because: .shutdown)
  }

  private func sendAll() async {
    while !Task.isCancelled, let batch = queue.take() { await send(batch) }
  }
}
