import FoundationEssentials
import ImageWorkerClient
import struct ImageWorkerClient.RetryPolicy
import Synchronization
import Testing

/// Batches whose streams break or stall: every item goes on with another stream, within its attempts.
@Suite("Broken streams of batches", .timeLimit(.minutes(15)))
struct BatchStreamTests {
  @Test("streams that break lose no item")
  func breaks() async throws {
    let received = Mutex(0)
    let behavior: FakeWorker.Behavior = { _, _ in
      let count = received.withLock { count in
        count += 1
        return count
      }
      if count % 17 == 0 { throw FakeWorker.Break() }
      return nil
    }
    try await FakeWorker.with(behavior) { worker in
      var options = BatchOptions()
      (options.streams, options.window) = (2, 4)
      try await withClient(worker.address, retry: .quick) {
        check(try await all($0.batch(images(400), options: options)), 400)
      }
      #expect(worker.record.streamCount >= 400 / 17)
    }
  }

  // A proxy sends streams to a worker that is gone, until it finds out; those to the others go on meanwhile.
  @Test("items outlive a proxy that refuses some streams for a while")
  func proxy() async throws {
    let firstRefusal = Mutex<ContinuousClock.Instant?>(nil)
    let refusesStream = { @Sendable (number: Int) in
      number > 2
        && firstRefusal.withLock { first in
          if first == nil { first = .now }
          return first.map { $0.duration(to: .now) < .seconds(1) } ?? true
        }
    }
    let behavior: FakeWorker.Behavior = { _, _ in
      try await Task.sleep(for: .milliseconds(5))
      return nil
    }
    try await FakeWorker.with(refusesStream: refusesStream, behavior) { worker in
      var options = BatchOptions()
      (options.streams, options.window) = (4, 4)
      try await withClient(worker.address) { check(try await all($0.batch(images(800), options: options)), 800) }
      #expect((5..<25).contains(worker.record.streamCount))
    }
  }

  @Test("an image that breaks streams takes no other with it")
  func poison() async throws {
    let poison = Data("poison".utf8)
    var items = images(60)
    items[7] = Item(7, .bytes(poison))
    let chosen = items
    try await FakeWorker.with({ image, _ in if image == poison { throw FakeWorker.Break() } else { nil } }) { worker in
      let results = try await withClient(worker.address, retry: .quick) { try await all($0.batch(chosen)) }
      #expect(results.count == 60 && worker.record.seen[poison] == RetryPolicy.quick.attempts)
      for result in results {
        if result.key == 7 {
          #expect(result.attempts == RetryPolicy.quick.attempts && failure(result)?.kind == .unavailable)
        } else {
          #expect(failure(result) == nil)
        }
      }
    }
  }

  @Test("a stream on which nothing happens is replaced")
  func stall() async throws {
    let slow: FakeWorker.Behavior = { image, count in
      if image == Data("image 3".utf8), count == 1 { try await Task.sleep(for: .seconds(300)) }
      return nil
    }
    var impatient = RetryPolicy.quick
    // A machine that is busy with other tests may hold up healthy streams, too.
    (impatient.stallAfter, impatient.attempts) = (.seconds(10), 20)
    try await FakeWorker.with(slow) { worker in
      var options = BatchOptions()
      (options.timeout, options.window) = (nil, 4)
      let clock = ContinuousClock.now
      try await withClient(worker.address, retry: impatient) { [options] in
        check(try await all($0.batch(images(30), options: options)), 30)
      }
      #expect(worker.record.seen[Data("image 3".utf8), default: 0] >= 2)
      #expect(clock.duration(to: .now) < .seconds(200))
    }
  }

  @Test("a stream of bytes is sent once")
  func streamOfBytes() async throws {
    let parts = AsyncStream<Data> { continuation in
      continuation.yield(Data("image".utf8))
      continuation.finish()
    }
    try await FakeWorker.with({ _, _ in throw FakeWorker.Break() }) { worker in
      let results = try await withClient(worker.address, retry: .quick) {
        try await all($0.batch([Item(0, .stream(parts))]))
      }
      #expect(results.map { failure($0)?.kind } == [.unavailable])
      #expect(worker.record.seen == [Data("image".utf8): 1])
    }
  }
}
