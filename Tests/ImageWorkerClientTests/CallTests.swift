import FoundationEssentials
import GRPCCore
import GRPCProtobuf
import ImageWorkerClient
import struct ImageWorkerClient.RetryPolicy
import Synchronization
import Testing
import WorkerProtocol

/// Single images: sources, errors, retries and deadlines.
@Suite("Calls of the client", .timeLimit(.minutes(15)))
struct CallTests {
  private static let image = Data("image".utf8)

  @Test("an image is bytes, a file or a stream of any size", arguments: [1, 1 << 20, (1 << 20) + 1, 3 << 20])
  func sources(byteCount: Int) async throws {
    let image = Data((0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let path = FileManager.default.temporaryDirectory.appending(path: "client-\(UUID())").path
    try image.write(to: URL(filePath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    let parts = AsyncStream<Data> { continuation in
      for start in stride(from: 0, to: image.count, by: 100_000) {
        continuation.yield(image.dropFirst(start).prefix(100_000))
      }
      continuation.finish()
    }
    try await FakeWorker.with { worker in
      try await withClient(worker.address) { client in
        for source in [ImageSource.bytes(image), .file(path), .stream(parts)] {
          let result = try await client.process(source)
          #expect(result.data == Data(image.reversed()) && result.format == "jpeg")
          #expect(result.width == 1 && result.height == 2)
        }
        let collected = Mutex(Data())
        try await client.stream(.file(path)) { part in
          if case .chunk(let chunk) = part { collected.withLock { $0 += chunk } }
        }
        #expect(collected.withLock { $0 } == Data(image.reversed()))
      }
      #expect(worker.record.seen == [image: 4])
    }
  }

  /// Uses a client as the top level of a program does, whose closures belong to the main actor.
  @MainActor
  private static func setFields(_ client: Client) async throws {
    let set: (inout Fields) -> Void = { fields in
      MainActor.assertIsolated()
      fields.maxWidth = 320
    }
    #expect(try await client.process(.bytes(image), fields: set).data == Data(image.reversed()))
    try await client.stream(.bytes(image), fields: set) { _ in }
    #expect(try await client.inspect(.bytes(image), fields: set).info.height == 2)
  }

  @Test("fields are set on the actor of the caller")
  func isolatedFields() async throws {
    try await FakeWorker.with { worker in try await withClient(worker.address) { try await Self.setFields($0) } }
  }

  @Test("a file that is missing is the caller's error, and is not retried")
  func missing() async throws {
    try await FakeWorker.with { worker in
      try await withClient(worker.address) { client in
        let error = await #expect(throws: (any Error).self) { try await client.process(.file("/nowhere/image")) }
        #expect(!(error is ImageWorkerError))
      }
      #expect(worker.record.seen.isEmpty)
    }
  }

  @Test("renditions, presets and inspections")
  func others() async throws {
    try await FakeWorker.with { worker in
      try await withClient(worker.address) { client in
        let results = try await client.renditions(
          .bytes(Self.image), [Rendition("large"), Rendition("small", preset: "favicon")])
        #expect(results.keys.sorted() == ["large", "small"])
        #expect(try results["small"]?.get().data == Data(Self.image.reversed()))
        #expect(try await client.inspect(.bytes(Self.image)).info.height == 2)
        #expect(try await client.presets().map(\.name) == ["default"])
      }
    }
  }

  @Test("inspections send the first mebibyte of a file, and the rest if the worker needs it")
  func inspectedBytes() async throws {
    let image = Data(repeating: 7, count: 2 << 20)
    let truncated: FakeWorker.Behavior = { bytes, _ in
      bytes.count < image.count ? .worker(.invalidArgument, "TRUNCATED_IMAGE") : nil
    }
    try await FakeWorker.with { worker in
      try await withClient(worker.address) { client in _ = try await client.inspect(.bytes(image)) }
      #expect(worker.record.seen == [image.prefix(1 << 20): 1])
    }
    try await FakeWorker.with(truncated) { worker in
      try await withClient(worker.address) { client in
        _ = try await client.inspect(.bytes(image))
        #expect(worker.record.seen == [image.prefix(1 << 20): 1, image: 1])
        _ = try await client.inspect(.bytes(image), fields: { $0.facts = true })
        let cut = ImageSource.bytes(image.dropLast())
        await #expect(throws: ImageWorkerError.self) { try await client.inspect(cut) }
      }
      #expect(worker.record.seen == [image.prefix(1 << 20): 2, image: 2, image.dropLast(): 1])
    }
  }

  @Test("errors have the details that the worker sends")
  func errors() async throws {
    let limit = GoogleRPCStatus.worker(
      .failedPrecondition, "LIMIT_EXCEEDED", ["limit_name": "max_pixels", "limit": "100", "value": "200"])
    try await FakeWorker.with({ _, _ in limit }) { worker in
      try await withClient(worker.address) { client in
        let error = await #expect(throws: ImageWorkerError.self) { try await client.process(.bytes(Self.image)) }
        #expect(
          error?.kind == .limitExceeded && error?.reason == "LIMIT_EXCEEDED" && error?.code == .failedPrecondition)
        #expect(error?.limitName == "max_pixels" && error?.limit == 100 && error?.value == 200)
        #expect(error?.isRetryable == false)
      }
      #expect(worker.counts == [1])
    }
    let field = GoogleRPCStatus.worker(.invalidArgument, "INVALID_FIELD", ["field": "start.configuration.max_width"])
    try await FakeWorker.with({ _, _ in field }) { worker in
      try await withClient(worker.address) { client in
        let large = Data(count: 2 << 20)
        let error = await #expect(throws: ImageWorkerError.self) { try await client.process(.bytes(large)) }
        #expect(error?.kind == .invalidRequest && error?.field == "configuration.max_width")
      }
    }
  }

  @Test("a worker that is full or gone is asked again, as often as the policy permits")
  func retries() async throws {
    let full = GoogleRPCStatus.worker(.resourceExhausted, "OVERLOADED", retryAfter: .milliseconds(10))
    let quota = GoogleRPCStatus.worker(.resourceExhausted, "QUOTA_EXCEEDED", retryAfter: .milliseconds(10))
    let behavior: FakeWorker.Behavior = { _, count in
      if count == 1 { throw FakeWorker.Break() }
      return count < 4 ? count == 2 ? quota : full : nil
    }
    try await FakeWorker.with(behavior) { worker in
      try await withClient(worker.address, retry: .quick) { client in
        for image in [Self.image, Data(count: 2 << 20)] {
          let result = try await client.process(.bytes(image))
          #expect(result.data == Data(image.reversed()))
        }
      }
      #expect(worker.counts == [4])
    }
    try await FakeWorker.with({ _, _ in full }) { worker in
      try await withClient(worker.address, retry: .quick) { client in
        let error = await #expect(throws: ImageWorkerError.self) { try await client.process(.bytes(Self.image)) }
        #expect(error?.kind == .overloaded && error?.retryAfter == .milliseconds(10))
      }
      #expect(worker.counts == [RetryPolicy.quick.attempts])
    }
  }

  @Test("a worker can ask for a delay of a day at most", arguments: [Duration.seconds(Int64.max), .seconds(Int64.min)])
  func endlessDelay(_ asked: Duration) async throws {
    let full = GoogleRPCStatus.worker(.resourceExhausted, "OVERLOADED", retryAfter: asked)
    try await FakeWorker.with({ _, _ in full }) { worker in
      try await withClient(worker.address, retry: .quick) { client in
        let error = await #expect(throws: ImageWorkerError.self) {
          try await client.process(.bytes(Self.image), timeout: .seconds(3600))
        }
        #expect(error?.retryAfter == (asked > .zero ? .seconds(86_400) : .zero))
      }
      // A wait of that length is possible.
      try await withClient(worker.address, retry: .quick) { client in
        let seen = worker.record.seen[Self.image, default: 0]
        let call = Task { try await client.process(.bytes(Self.image), timeout: nil) }
        while worker.record.seen[Self.image, default: 0] == seen { try await Task.sleep(for: .milliseconds(5)) }
        try await Task.sleep(for: .milliseconds(50))
        call.cancel()
        _ = await call.result
      }
    }
  }

  @Test("a call ends at its timeout")
  func timeout() async throws {
    let slow: FakeWorker.Behavior = { _, _ in
      try await Task.sleep(for: .seconds(300))
      return nil
    }
    try await FakeWorker.with(slow) { worker in
      try await withClient(worker.address) { client in
        let clock = ContinuousClock.now
        let error = await #expect(throws: ImageWorkerError.self) {
          try await client.process(.bytes(Self.image), timeout: .milliseconds(300))
        }
        #expect(error?.kind == .deadline && clock.duration(to: .now) < .seconds(200))
      }
    }
  }

  @Test("calls are spread over addresses and avoid one where nobody listens")
  func balancing() async throws {
    try await FakeWorker.with { one in
      try await FakeWorker.with { two in
        try await withClient([one.address, two.address]) { client in
          for number in 0..<20 { _ = try await client.process(.bytes(Data("\(number)".utf8))) }
        }
        #expect(one.record.seen.count == 10 && two.record.seen.count == 10)
        let dead = try await FakeWorker.deadAddress()
        try await withClient([dead, two.address], retry: .quick) { client in
          for number in 20..<40 { _ = try await client.process(.bytes(Data("\(number)".utf8))) }
          #expect(client.statuses.map(\.address) == [dead, two.address])
          #expect(client.statuses[0].error?.kind == .unavailable && client.statuses[1].error == nil)
        }
        #expect(two.record.seen.count == 30)
      }
    }
  }

  @Test("a token is sent with each call, and not over the network without TLS")
  func tokens() async throws {
    let tokens = Mutex(["second", "first"])
    try await FakeWorker.with { worker in
      try await withClient(worker.address, token: { tokens.withLock { $0.removeLast() } }) { client in
        _ = try await client.process(.bytes(Self.image))
        for try await result in client.batch([Item(0, .bytes(Self.image))]) { _ = try result.result() }
      }
      #expect(worker.record.tokens == ["Bearer first", "Bearer second"])
    }
    #expect(throws: ClientError.self) { try Client(["images.example.com:50051"], token: { "secret" }) }
    #expect(throws: Never.self) { try Client(["images.example.com:50051"], tls: TLS(), token: { "secret" }) }
  }

  @Test(
    "an address that is none is an error", arguments: ["", "host", "host:", ":1", "host:0", "::1:50051", "host:70000"])
  func addresses(text: String) {
    #expect(throws: ClientError.self) { try Client([text]) }
  }

  @Test(
    "an address is a name, a number or a socket",
    arguments: ["host:1", "127.0.0.1:50051", "[::1]:50051", "dns:///name:1", "unix:/tmp/worker"])
  func knownAddresses(text: String) throws {
    #expect(try Client([text]).statuses.map(\.address) == [text])
  }

  @Test("a result is saved whole")
  func save() async throws {
    try await FakeWorker.with { worker in
      let result = try await withClient(worker.address) { try await $0.process(.bytes(Self.image)) }
      let path = FileManager.default.temporaryDirectory.appending(path: "client-saved").path
      defer { try? FileManager.default.removeItem(atPath: path) }
      try await result.save(to: path)
      #expect(try Data(contentsOf: URL(filePath: path)) == Data("egami".utf8))
    }
  }
}
