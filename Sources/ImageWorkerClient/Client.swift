internal import Synchronization

/// A client of one or several workers.
///
/// Calls go to the address with the fewest open calls, and avoid those that failed just now. A client works while its
/// ``run()`` does: use `withClient`, or run it as a service of your process.
public final class Client: Sendable {
  /// The maximum size of a result, unless the client is created with another one: 128 MiB.
  public static let defaultMaxResultBytes = 128 << 20

  let workers: Workers
  private let jobs: AsyncStream<@Sendable () async -> Void>
  private let jobsContinuation: AsyncStream<@Sendable () async -> Void>.Continuation

  /// Creates a client; nothing is connected yet.
  /// - `addresses`: `host:port` of each worker, or `unix:/path`. A name is balanced over all of its addresses.
  /// - `tls`: certificates; without them the connection is not encrypted.
  /// - `token`: returns the token that is sent as `authorization: Bearer` with each call. Tokens are not sent without
  ///   TLS, except to this machine.
  /// - `connections`: connections per address. A balancer that distributes connections needs several.
  /// - `retry`: when requests are sent again.
  /// - `maxResultBytes`: the maximum size of a result; a larger one is an error.
  /// - Throws: ``ClientError``, or an error of the certificates.
  public init(
    _ addresses: [String], tls: TLS? = nil, token: (@Sendable () async throws -> String)? = nil, connections: Int = 1,
    retry: RetryPolicy = RetryPolicy(), maxResultBytes: Int = defaultMaxResultBytes
  ) throws {
    guard !addresses.isEmpty, connections >= 1 else {
      throw ClientError("a client needs at least one address and one connection")
    }
    guard maxResultBytes >= 1 else {
      throw ClientError("maxResultBytes is \(maxResultBytes); it must be at least 1")
    }
    let addresses = try addresses.map(WorkerAddress.init)
    if token != nil, tls == nil, let distant = addresses.first(where: { !$0.isLocal }) {
      throw ClientError("a token for \(distant.text) needs TLS; without it, anyone on the network path could read it")
    }
    workers = Workers(
      try (0..<connections).flatMap { _ in try addresses.map { try Worker($0, tls: tls) } }, retry: retry,
      maxResultBytes: maxResultBytes, token: token)
    (jobs, jobsContinuation) = AsyncStream.makeStream()
  }

  /// Maintains the connections, and works on batches, until ``close()`` is called or the task is cancelled.
  public func run() async {
    await withDiscardingTaskGroup { group in
      for worker in workers.all { group.addTask { await worker.run() } }
      for await job in jobs { group.addTask(operation: job) }
      if Task.isCancelled { group.cancelAll() }
    }
  }

  /// Closes the connections when their calls have ended.
  public func close() {
    jobsContinuation.finish()
    for worker in workers.all { worker.close() }
  }

  /// The state of each connection.
  public var statuses: [WorkerStatus] { workers.statuses }

  /// Runs `job` as a part of ``run()``.
  /// - Returns: `false` if the client is closed.
  func start(_ job: @escaping @Sendable () async -> Void) -> Bool {
    if case .terminated = jobsContinuation.yield(job) { return false }
    return true
  }

  /// Runs this client while `body` uses it.
  package func running<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
    try await withThrowingDiscardingTaskGroup { group in
      group.addTask { await self.run() }
      defer {
        close()
        group.cancelAll()
      }
      return try await body()
    }
  }
}

/// Runs a client while `body` uses it.
///
/// See ``Client/init(_:tls:token:connections:retry:maxResultBytes:)``.
public func withClient<Result: Sendable>(
  _ addresses: [String], tls: TLS? = nil, token: (@Sendable () async throws -> String)? = nil, connections: Int = 1,
  retry: RetryPolicy = RetryPolicy(), maxResultBytes: Int = Client.defaultMaxResultBytes,
  _ body: (Client) async throws -> Result
) async throws -> Result {
  let client = try Client(
    addresses, tls: tls, token: token, connections: connections, retry: retry, maxResultBytes: maxResultBytes)
  return try await client.running { try await body(client) }
}

/// Runs a client of one worker while `body` uses it.
///
/// See ``Client/init(_:tls:token:connections:retry:maxResultBytes:)``.
public func withClient<Result: Sendable>(
  _ address: String, tls: TLS? = nil, token: (@Sendable () async throws -> String)? = nil, connections: Int = 1,
  retry: RetryPolicy = RetryPolicy(), maxResultBytes: Int = Client.defaultMaxResultBytes,
  _ body: (Client) async throws -> Result
) async throws -> Result {
  try await withClient(
    [address], tls: tls, token: token, connections: connections, retry: retry, maxResultBytes: maxResultBytes, body)
}
