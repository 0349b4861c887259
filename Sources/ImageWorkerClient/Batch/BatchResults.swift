internal import Synchronization
public import WorkerProtocol

/// The results of a batch, as they are ready, in any order.
///
/// Items are taken while results are consumed: a slow consumer slows the batch down, and a batch of a billion images needs
/// no more memory than one of a hundred. The batch begins with the first call of the iterator, and is cancelled when the
/// iterator is discarded. Iterate once.
public struct BatchResults<Key: Sendable>: AsyncSequence, Sendable {
  /// The outcome of an item.
  public typealias Element = BatchResult<Key>
  /// Errors of all workers, or of the sequence of items.
  public typealias Failure = any Error

  let start: @Sendable () -> Run

  /// Begins the batch.
  public func makeAsyncIterator() -> Iterator { Iterator(run: start()) }

  /// Belongs to one consumer; the batch ends with it.
  public final class Iterator: AsyncIteratorProtocol {
    private let run: Run
    private var isConsumed = true

    init(run: Run) { self.run = run }

    deinit { run.state.update { $0.isStopped = true } }

    /// The next result; `nil` after the last one.
    /// - Throws: ``ImageWorkerError`` if no worker can be reached or none accepts the client, an error of the sequence of
    ///   items, or `CancellationError`.
    public func next() async throws -> BatchResult<Key>? {
      // The place of a result that was consumed goes to a further item.
      if !isConsumed { run.state.update { $0.openCount -= 1 } }
      isConsumed = true
      guard let end = try await run.state.next(), let key = run.takeKey(of: end.number) else { return nil }
      isConsumed = false
      return BatchResult(
        key: key, outcomes: end.outcomes, preview: end.preview, attempts: end.attempts, worker: end.worker)
    }
  }

  final class Run: Sendable {
    let state: BatchState
    private let keys = Mutex<[Int: Key]>([:])

    init(state: BatchState) { self.state = state }

    func takeKey(of number: Int) -> Key? { keys.withLock { $0.removeValue(forKey: number) } }

    /// Takes items while there is room for them.
    func feed<Items: AsyncSequence>(_ items: Items, preset: String, fields: Fields) async
    where Items.Element == Item<Key> {
      var iterator = items.makeAsyncIterator()
      var number = 0
      do {
        while await state.waitForRoom() {
          guard let item = try await iterator.next() else { return state.exhaust() }
          number += 1
          keys.withLock { $0[number] = item.key }
          do {
            state.add(number, Upload(item.image), try item.request(preset: preset, fields: fields))
          } catch { state.addFailure(number, error) }
        }
      } catch { state.exhaust(error) }
    }
  }
}

extension BatchState {
  private static let tick = Duration.milliseconds(50)
  /// The time that streams have to end in order when all items are done.
  private static let endLimit = Duration.seconds(1)

  /// Works until no item is left.
  /// - `feed`: takes the items.
  func run(on workers: Workers, feed: @escaping @Sendable () async -> Void) async {
    await withTaskGroup(of: Void.self) { group in
      let laneCount = contents.withLock { $0.lanes.count }
      group.addTask { await feed() }
      for number in 0..<laneCount {
        group.addTask { [self] in
          do { try await BatchLane(number: number, batch: self, workers: workers).run() } catch {
            if !(error is CancellationError) { fail(error) }
          }
          update { $0.activeLaneCount -= 1 }
        }
      }
      group.addTask { [self] in
        while !isDone, !Task.isCancelled {
          try? await Task.sleep(for: Self.tick)
          expire()
        }
      }
      _ = await wait { $0.isDone ? true : nil }
      let deadline = ContinuousClock.now + Self.endLimit
      while contents.withLock({ $0.activeLaneCount }) > 0, .now < deadline, !Task.isCancelled {
        try? await Task.sleep(for: .milliseconds(5))
      }
      group.cancelAll()
    }
    // The client was closed, or its task was cancelled.
    if !isDone { fail(ClientError.closed) }
  }
}

extension Client {
  /// Processes many images, and returns their results as they are ready, in any order.
  ///
  /// Each item has exactly one result, which contains its error if it failed; the others go on. Errors of a worker or a
  /// connection are retried, on other workers if there are any. If no worker can be reached for
  /// ``RetryPolicy/giveUpAfter``, or none accepts the token, the sequence throws that error.
  ///
  /// At most `streams * window` items are open at a time, and the memory of a batch is that of so many results, each of
  /// at most ``Client/defaultMaxResultBytes`` unless the client was created with another maximum.
  /// - `items`: is iterated as results are consumed; its error is thrown after the results of the items before it.
  public func batch<Key: Sendable, Items: AsyncSequence & Sendable>(
    _ items: Items, preset: String = "", options: BatchOptions = BatchOptions(),
    fields: (inout Fields) -> Void = { _ in }
  ) -> BatchResults<Key> where Items.Element == Item<Key> {
    var common = Fields()
    fields(&common)
    let (workers, batchFields) = (workers, common)
    return BatchResults { [self] in
      let laneCount = max(1, options.streams ?? workers.all.count)
      let state = BatchState(
        options: options, laneCount: laneCount, retry: workers.retry, maxResultBytes: workers.maxResultBytes)
      let run = BatchResults<Key>.Run(state: state)
      let isStarted = start {
        await state.run(on: workers) { await run.feed(items, preset: preset, fields: batchFields) }
      }
      if !isStarted { state.fail(ClientError.closed) }
      return run
    }
  }

  /// Processes many images, and returns their results as they are ready, in any order.
  ///
  /// - `items`: is iterated as results are consumed, so that a lazy sequence may be long.
  public func batch<Key: Sendable, Items: Sequence & Sendable>(
    _ items: Items, preset: String = "", options: BatchOptions = BatchOptions(),
    fields: (inout Fields) -> Void = { _ in }
  ) -> BatchResults<Key> where Items.Element == Item<Key> {
    batch(Listed(items: items), preset: preset, options: options, fields: fields)
  }
}

/// A sequence as an asynchronous one, iterated as its consumer asks.
private struct Listed<Items: Sequence & Sendable>: AsyncSequence, Sendable {
  let items: Items

  struct Iterator: AsyncIteratorProtocol {
    var items: Items.Iterator

    mutating func next() async -> Items.Element? { items.next() }
  }

  func makeAsyncIterator() -> Iterator { Iterator(items: items.makeIterator()) }
}
