/// Sends what a queue holds, a batch at a time: when a batch is full, after a delay, and once more when it is closed.
struct BatchExporter<Batch: BatchContents & Sendable>: Sendable where Batch.Element: Sendable {
  let queue: BatchQueue<Batch>
  /// The longest that anything waits in the queue while the collector answers.
  let delay: Duration
  /// What the last flush may take once the queue is closed.
  let flushLimit: Duration
  /// Sends one batch; returns when the collector took it or it was given up.
  let send: @Sendable (Batch) async -> Void

  /// Works until the queue is closed and empty, or the time for the last flush is over.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        for await _ in queue.wakes { await sendAll() }
        await sendAll()
      }
      group.addTask {
        for await _ in queue.closes {}
        try? await Task.sleep(for: flushLimit)
      }
      group.addTask { while (try? await Task.sleep(for: delay)) != nil { queue.flush() } }
      // The first ends when all is sent, the second when the time for that is over, the third never.
      await group.next()
      group.cancelAll()
    }
    queue.counts.drop(queue.count, because: .shutdown)
  }

  private func sendAll() async {
    while !Task.isCancelled, let batch = queue.take() { await send(batch) }
  }
}
