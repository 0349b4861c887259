internal import Admission
internal import ImagePipeline
internal import ServiceLifecycle
internal import WorkerOperations
internal import WorkerService

/// Returns free memory to the system when the worker has become idle.
struct IdleMemoryService: Service {
  /// The calls to watch.
  let drain: DrainState
  /// The connections to watch.
  let connections: ConnectionCount
  /// The memory of messages, which clients may also leave unfinished.
  let memory: MemoryBudget
  /// The processes whose memory is returned too; `nil` if codecs run in this process.
  let helpers: HelperPool?

  /// How long no call must have been served.
  private static let idlePeriod = Duration.seconds(2)
  /// The number of closed connections that leave enough memory behind to be worth a trim.
  private static let connectionsPerTrim: UInt64 = 64

  /// Checks once per period until the process shuts down.
  ///
  /// A worker that stays idle is trimmed once, and again when connections or calls have gone that were open then: their
  /// memory was not free yet.
  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      var trimmed = counts
      var last = counts
      while true {
        try await Task.sleep(for: Self.idlePeriod)
        let now = counts
        let isWorthwhile =
          now.calls != trimmed.calls || now.messages != trimmed.messages
          || now.occupied < trimmed.occupied || now.closed >= trimmed.closed + Self.connectionsPerTrim
        if now == last, isWorthwhile, drain.workCount == 0 {
          Allocator.trim()
          helpers?.trim()
          trimmed = now
        }
        last = now
      }
    }
  }

  /// The numbers of calls that have started, of messages that were freed and of connections that were closed, and the
  /// bytes that open connections and calls take.
  private var counts: (calls: UInt64, messages: UInt64, closed: UInt64, occupied: Int) {
    (drain.startedCount, memory.endedMessageCount, connections.closedCount, memory.occupied)
  }
}
