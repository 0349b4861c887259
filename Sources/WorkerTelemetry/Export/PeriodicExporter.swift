/// Exports at a fixed interval, and once more when it is closed.
final class PeriodicExporter: Sendable {
  private let interval: Duration
  private let flushLimit: Duration
  private let send: @Sendable () async -> Void
  private let closing = AsyncStream<Never>.makeStream()

  init(interval: Duration, flushLimit: Duration, send: @escaping @Sendable () async -> Void) {
    self.interval = interval
    self.flushLimit = flushLimit
    self.send = send
  }

  func close() { closing.continuation.finish() }

  /// Exports until it is closed and has exported once more, or until the time limit for the last exports has passed.
  func run() async {
    let due = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [interval] in
        while (try? await Task.sleep(for: interval)) != nil { due.continuation.yield() }
      }
      group.addTask { [send] in
        for await _ in due.stream { await send() }
        await send()
      }
      for await _ in closing.stream {}
      // An export in progress ends by itself.
      due.continuation.finish()
      group.addTask { [flushLimit] in try? await Task.sleep(for: flushLimit) }
      await group.next()
      group.cancelAll()
    }
  }
}
