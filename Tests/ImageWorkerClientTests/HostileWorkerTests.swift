import FoundationEssentials
import GRPCCore
import ImageWorkerClient
import struct ImageWorkerClient.RetryPolicy
import Testing

/// What a client takes from a worker has an end, in bytes and in time, whatever the worker sends.
///
/// One at a time, as each takes all processors.
@Suite("Hostile workers", .serialized, .timeLimit(.minutes(15)))
struct HostileWorkerTests {
  private static let image = Data("image".utf8)
  private static let limit = 4096
  /// What is on its way: the windows of HTTP/2, and the buffers of the server.
  private static let underwayByteCount = 64 << 20

  /// The policy against an attack: one without progress ends soon, others have the time that they need.
  private func policy(_ attack: HostileWorker.Attack) -> RetryPolicy {
    var policy = RetryPolicy.quick
    switch attack {
    // Their errors are not retried, but connections may break on a busy machine.
    case .bytes, .singleBytes, .earlyEnds: policy.attempts = 100
    case .largeMessages: policy.attempts = 2
    case .emptyChunks, .headers, .resultsOfOthers, .endsOfOthers, .nothing:
      (policy.attempts, policy.stallAfter) = (2, .seconds(1))
    }
    return policy
  }

  private func check(_ error: ImageWorkerError?, _ attack: HostileWorker.Attack) {
    switch attack {
    case .bytes, .singleBytes:
      #expect(
        error?.kind == .limitExceeded && error?.reason == "" && error?.isRetryable == false,
        "\(String(describing: error))")
      #expect(error?.limitName == "maxResultBytes" && error?.limit == Self.limit)
    // The transport refuses such a message.
    case .largeMessages: #expect(error != nil && error?.kind != .limitExceeded)
    case .earlyEnds: #expect(error?.code == .dataLoss && error?.isRetryable == false)
    case .emptyChunks, .headers, .resultsOfOthers, .endsOfOthers, .nothing:
      #expect(error?.kind == .unavailable)
    }
  }

  @Test("a call ends", arguments: HostileWorker.Attack.allCases)
  func calls(attack: HostileWorker.Attack) async throws {
    try await HostileWorker.with(attack) { worker, address in
      try await withClient(address, retry: policy(attack), maxResultBytes: Self.limit) { client in
        // The large one goes over the other call.
        let images = [Self.image] + (attack == .bytes || attack == .nothing ? [Data(count: 2 << 20)] : [])
        for image in images {
          check(
            await #expect(throws: ImageWorkerError.self) { try await client.process(.bytes(image), timeout: nil) },
            attack)
        }
        check(
          await #expect(throws: ImageWorkerError.self) {
            try await client.renditions(.bytes(Self.image), [Rendition("one"), Rendition("two")], timeout: nil)
          }, attack)
        check(
          await #expect(throws: ImageWorkerError.self) {
            try await client.stream(.bytes(Self.image), timeout: nil) { _ in }
          }, attack)
        // While the client is connected: it has ended the calls themselves.
        while worker.attackCount > 0 { try await Task.sleep(for: .milliseconds(10)) }
      }
      if attack == .bytes { #expect(worker.sentByteCount < Self.underwayByteCount) }
    }
  }

  @Test("an item of a batch ends", arguments: HostileWorker.Attack.allCases.filter { $0 != .largeMessages })
  func items(attack: HostileWorker.Attack) async throws {
    try await HostileWorker.with(attack) { _, address in
      try await withClient(address, retry: policy(attack), maxResultBytes: Self.limit) { client in
        var options = BatchOptions()
        options.timeout = nil
        let results = try await all(client.batch([Item(0, .bytes(Self.image))], options: options))
        #expect(results.count == 1)
        for result in results { check(failure(result), attack) }
      }
    }
  }

  @Test("other items of a batch go on")
  func others() async throws {
    try await HostileWorker.with(.bytes) { _, address in
      try await withClient(address, retry: policy(.bytes), maxResultBytes: Self.limit) { client in
        let items = (0..<50).map { Item($0, .bytes($0.isMultiple(of: 5) ? Self.image : HostileWorker.good)) }
        let results = try await all(client.batch(items))
        #expect(results.count == 50)
        for result in results {
          #expect(failure(result)?.kind == (result.key.isMultiple(of: 5) ? .limitExceeded : nil))
        }
      }
    }
  }

  @Test("a call without an upload ends")
  func inspection() async throws {
    try await HostileWorker.with(.nothing) { _, address in
      try await withClient(address, retry: policy(.nothing)) { client in
        let error = await #expect(throws: ImageWorkerError.self) {
          try await client.inspect(.bytes(Self.image), timeout: nil)
        }
        #expect(error?.kind == .deadline)
      }
    }
  }

  @Test("a receiver may take longer than a worker")
  func slowReceiver() async throws {
    try await FakeWorker.with { worker in
      var policy = RetryPolicy.quick
      policy.stallAfter = .seconds(10)
      try await withClient(worker.address, retry: policy) { client in
        try await client.stream(.bytes(Self.image), timeout: nil) { _ in try await Task.sleep(for: .seconds(12)) }
      }
    }
  }

  @Test("a limit below a byte is a mistake")
  func mistake() {
    #expect(throws: ClientError.self) { try Client(["127.0.0.1:50051"], maxResultBytes: 0) }
  }
}
