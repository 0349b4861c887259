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

  /// Exports until it is closed and has exported once more, or until the time limit for the last export has passed.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [interval, send] in
        while (try? await Task.sleep(for: interval)) != nil { await send() }
      }
      for await _ in closing.stream {}
      group.cancelAll()
    }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [send] in await send() }
      group.addTask { [flushLimit] in try? await Task.sleep(for: flushLimit) }
      await group.next()
      group.cancelAll()
    }
  }
}
