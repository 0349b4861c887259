internal import GRPCCore
internal import Synchronization

/// All connections of a client.
final class Workers: Sendable {
  let all: [Worker]
  let retry: RetryPolicy
  /// The maximum size of a result.
  let maxResultBytes: Int
  private let turns = Mutex(0)
  private let token: (@Sendable () async throws -> String)?

  init(
    _ all: [Worker], retry: RetryPolicy, maxResultBytes: Int, token: (@Sendable () async throws -> String)?
  ) {
    self.all = all
    self.retry = retry
    self.maxResultBytes = maxResultBytes
    self.token = token
  }

  /// The metadata of a call.
  func metadata() async throws -> Metadata {
    guard let token else { return [:] }
    return ["authorization": .string("Bearer \(try await token())")]
  }

  /// The call options: a connection that fails is an error at once, as another one may work.
  static func options(timeout: Duration?) -> CallOptions {
    var options = CallOptions.defaults
    options.waitForReady = false
    options.timeout = timeout
    return options
  }

  /// Uses the connection with the fewest calls of those that did not fail just now; in turn if several have.
  func use<Result: Sendable>(_ body: (Worker) async throws -> Result) async rethrows -> Result {
    let worker = choose()
    defer { worker.state.withLock { $0.load -= 1 } }
    return try await body(worker)
  }

  private func choose() -> Worker {
    turns.withLock { turn in
      let now = ContinuousClock.now
      turn += 1
      let ranks = all.map { worker in
        worker.state.withLock { (max(.zero, now.duration(to: $0.availableAt)), $0.load, $0.turn) }
      }
      let best = ranks.indices.min { ranks[$0] < ranks[$1] } ?? 0
      all[best].state.withLock { state in
        state.load += 1
        state.turn = turn
      }
      return all[best]
    }
  }

  /// Avoids a connection for some time, because it failed or asked for it.
  /// - `isBatch`: whether items wait, which have no deadline before they are sent.
  func fail(_ worker: Worker, _ error: ImageWorkerError, isBatch: Bool = false) {
    worker.state.withLock { state in
      state.failures += 1
      let asked = isBatch ? error.retryDelay : error.retryAfter ?? .zero
      state.availableAt = .now + max(retry.delay(afterFailures: state.failures), asked)
      state.lastError = error
    }
  }

  /// Uses a connection as before.
  func succeed(_ worker: Worker) {
    worker.state.withLock { state in
      state.failures = 0
      state.availableAt = .now
      state.lastError = nil
    }
  }

  /// The time until a connection may be used.
  func delay() -> Duration {
    let now = ContinuousClock.now
    return all.map { worker in max(.zero, now.duration(to: worker.state.withLock { $0.availableAt })) }.min() ?? .zero
  }

  var statuses: [WorkerStatus] {
    all.map { worker in
      worker.state.withLock { state in
        WorkerStatus(
          address: worker.address.text, itemsInFlight: state.itemsInFlight, itemsDone: state.itemsDone,
          error: state.lastError)
      }
    }
  }
}
