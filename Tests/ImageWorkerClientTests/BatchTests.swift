import FoundationEssentials
import GRPCCore
import GRPCProtobuf
import ImageWorkerClient
import struct ImageWorkerClient.RetryPolicy
import SwiftProtobuf
import Synchronization
import Testing
import WorkerProtocol

/// Batches: every item ends once, whatever happens to workers, streams and items.
@Suite("Batches of the client", .timeLimit(.minutes(15)))
struct BatchTests {
  @Test("every item ends once", arguments: [(1, 1), (1, 16), (3, 4)])
  func once(streams: Int, window: Int) async throws {
    try await FakeWorker.with { worker in
      var options = BatchOptions()
      (options.streams, options.window) = (streams, window)
      try await withClient(worker.address) { client in
        check(try await all(client.batch(images(200), options: options)), 200)
        #expect(try await all(client.batch(images(0), options: options)).isEmpty)
      }
      #expect(worker.counts == [1])
    }
  }

  @Test("a long batch uses several streams")
  func severalStreams() async throws {
    try await FakeWorker.with { worker in
      try await withClient(worker.address) { check(try await all($0.batch(images(2500))), 2500) }
      #expect(worker.record.streamCount == 3)
    }
  }

  @Test("items that find no room come again after the delay")
  func overload() async throws {
    let full = GoogleRPCStatus.worker(.resourceExhausted, "OVERLOADED", retryAfter: .milliseconds(50))
    try await FakeWorker.with({ _, count in count < 3 ? full : nil }) { worker in
      try await withClient(worker.address, retry: .quick) { check(try await all($0.batch(images(40))), 40) }
      #expect(worker.counts == [3])
    }
    var never = RetryPolicy.quick
    never.overloadAttempts = 2
    try await FakeWorker.with({ _, _ in full }) { worker in
      let results = try await withClient(worker.address, retry: never) { try await all($0.batch(images(3))) }
      #expect(results.map { failure($0)?.kind } == [.overloaded, .overloaded, .overloaded])
      #expect(worker.counts == [2])
    }
  }

  @Test("the items of a worker that shuts down go to others")
  func draining() async throws {
    let draining = GoogleRPCStatus.worker(.unavailable, "DRAINING", retryAfter: .milliseconds(100))
    try await FakeWorker.with({ _, _ in draining }) { leaving in
      try await FakeWorker.with { other in
        try await withClient([leaving.address, other.address], retry: .quick) {
          check(try await all($0.batch(images(100))), 100)
        }
        #expect(other.counts == [1])
      }
    }
  }

  @Test("the items of a slow worker are sent to an idle one at the end, and the first result counts")
  func stragglers() async throws {
    let slow: FakeWorker.Behavior = { _, _ in
      try await Task.sleep(for: .seconds(300))
      return nil
    }
    try await FakeWorker.with(slow) { sleeping in
      try await FakeWorker.with { other in
        var options = BatchOptions()
        options.isSpeculative = true
        let clock = ContinuousClock.now
        try await withClient([sleeping.address, other.address], retry: .quick) {
          check(try await all($0.batch(images(100), options: options)), 100)
        }
        #expect(clock.duration(to: .now) < .seconds(200))
        #expect(sleeping.record.seen.count == 1 && other.record.seen.count == 100)
      }
    }
  }

  @Test("workers that nobody reaches end the batch")
  func unreachable() async throws {
    let address = try await FakeWorker.deadAddress()
    let clock = ContinuousClock.now
    var brief = RetryPolicy.quick
    brief.giveUpAfter = .seconds(1)
    let error = await #expect(throws: ImageWorkerError.self) {
      try await withClient(address, retry: brief) { _ = try await all($0.batch(images(5))) }
    }
    #expect(
      error?.kind == .unavailable && error?.message.hasPrefix("no worker could be reached for 1.0 seconds") == true)
    #expect(clock.duration(to: .now) > .milliseconds(900))
  }

  @Test("an error of the sequence of items follows the results of those before it", arguments: [2, 64])
  func failingSequence(window: Int) async throws {
    struct Gone: Error {}
    let items = AsyncThrowingStream<Item<Int>, any Error> { continuation in
      for item in images(20) { continuation.yield(item) }
      continuation.finish(throwing: Gone())
    }
    var options = BatchOptions()
    options.window = window
    try await FakeWorker.with { worker in
      try await withClient(worker.address, retry: .quick) { client in
        var results: [BatchResult<Int>] = []
        await #expect(throws: Gone.self) {
          for try await result in client.batch(items, options: options) { results.append(result) }
        }
        check(results, 20)
      }
    }
  }

  @Test("errors of items are theirs alone, and items have presets and fields of their own")
  func errors() async throws {
    let corrupt = GoogleRPCStatus.worker(.invalidArgument, "CORRUPT_IMAGE")
    struct Gone: Error {}
    let broken = AsyncThrowingStream<Data, any Error> { continuation in
      continuation.yield(Data(count: 2 << 20))
      continuation.finish(throwing: Gone())
    }
    let items = [
      Item(0, .bytes(Data("image 0".utf8))), Item(1, .file("/nowhere/image")), Item(2, .stream(broken)),
      Item(3, .bytes(Data("corrupt".utf8))),
      Item(4, .bytes(Data("image 4".utf8)), preset: "favicon") { fields in
        fields.maxHeight = 9
        fields.filters = [.with { $0.name = "sepia" }]
      },
    ]
    try await FakeWorker.with({ image, _ in image == Data("corrupt".utf8) ? corrupt : nil }) { worker in
      let results = try await withClient(worker.address, retry: .quick) { client in
        try await all(
          client.batch(items, preset: "upload") { fields in
            fields.maxWidth = 8
            fields.filters = [.with { $0.name = "invert" }]
          })
      }
      let byKey = Dictionary(uniqueKeysWithValues: results.map { ($0.key, $0) })
      #expect(byKey.count == 5 && byKey[0].map { failure($0) == nil } == true)
      #expect(throws: (any Error).self) { try byKey[1]?.result() }
      #expect(throws: Gone.self) { try byKey[2]?.result() }
      #expect(
        byKey[3].flatMap { failure($0)?.kind } == .image && byKey[3].flatMap { failure($0)?.reason } == "CORRUPT_IMAGE")
      let start = try #require(worker.record.starts.first { $0.preset == "favicon" })
      #expect(start.configuration.maxWidth == 8 && start.configuration.maxHeight == 9)
      #expect(start.configuration.filters.map(\.name) == ["sepia"])
    }
  }

  @Test("an error of the sequence of items ends the batch")
  func sequence() async throws {
    struct NoMore: Error {}
    let items = AsyncThrowingStream<Item<Int>, any Error> { continuation in
      for image in images(3) { continuation.yield(image) }
      continuation.finish(throwing: NoMore())
    }
    try await FakeWorker.with { worker in
      _ = await #expect(throws: NoMore.self) {
        try await withClient(worker.address) { _ = try await all($0.batch(items)) }
      }
    }
  }

  @Test("a stream that is refused ends the batch")
  func refusal() async throws {
    let refusal = RPCError(code: .unauthenticated, message: "no token")
    try await FakeWorker.with(refusal: refusal) { worker in
      let error = await #expect(throws: ImageWorkerError.self) {
        try await withClient(worker.address, retry: .quick) { _ = try await all($0.batch(images(5))) }
      }
      #expect(error?.kind == .authentication)
    }
  }

  @Test("items are taken as results are consumed")
  func backPressure() async throws {
    let taken = Mutex(0)
    try await FakeWorker.with { worker in
      var options = BatchOptions()
      (options.streams, options.window) = (2, 5)
      try await withClient(worker.address) { [options] client in
        let items = Taken(items: images(500)) { taken.withLock { $0 += 1 } }
        let results = client.batch(items, options: options).makeAsyncIterator()
        for consumed in 1..<50 {
          _ = try await results.next()
          try await Task.sleep(for: .milliseconds(2))
          #expect(taken.withLock { $0 } <= consumed + 10)
        }
        try await Task.sleep(for: .milliseconds(300))
        #expect(taken.withLock { $0 } <= 59)
      }
    }
  }

  @Test("an item that takes too long ends and the others go on")
  func timeout() async throws {
    let slow: FakeWorker.Behavior = { image, count in
      if image == Data("image 3".utf8), count == 1 { try await Task.sleep(for: .seconds(300)) }
      return nil
    }
    try await FakeWorker.with(slow) { worker in
      var options = BatchOptions()
      // Long enough for the other items while other tests run.
      (options.timeout, options.window) = (.seconds(30), 1)
      let results = try await withClient(worker.address, retry: .quick) { [options] in
        try await all($0.batch(images(30), options: options))
      }
      #expect(results.count == 30)
      for result in results { #expect(failure(result)?.kind == (result.key == 3 ? .deadline : nil)) }
    }
  }

  @Test("a batch of a closed client ends with an error")
  func closed() async throws {
    try await FakeWorker.with { worker in
      let client = try await withClient(worker.address) { client in
        var results = client.batch(images(10_000)).makeAsyncIterator()
        let first = try await results.next()
        #expect(first != nil)
        results = client.batch(images(10)).makeAsyncIterator()
        let second = try await results.next()
        #expect(second != nil)
        return client
      }
      await #expect(throws: ClientError.self) { _ = try await all(client.batch(images(5))) }
    }
  }
}
