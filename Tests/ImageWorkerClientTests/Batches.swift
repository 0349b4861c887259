import FoundationEssentials
import ImageWorkerClient
import Testing

import struct ImageWorkerClient.RetryPolicy

/// Items whose images have their numbers in them.
func images(_ count: Int) -> [Item<Int>] {
  (0..<count).map { Item($0, .bytes(Data("image \($0)".utf8))) }
}

/// The results of a whole batch.
func all(_ results: BatchResults<Int>) async throws -> [BatchResult<Int>] {
  var all: [BatchResult<Int>] = []
  for try await result in results { all.append(result) }
  return all
}

/// Every item ended once, with its own result.
func check(_ results: [BatchResult<Int>], _ count: Int) {
  #expect(results.map(\.key).sorted() == Array(0..<count))
  for result in results {
    #expect((try? result.result().data) == Data("image \(result.key)".utf8.reversed()))
  }
}

/// The error of an item, if it is one of the service.
func failure(_ result: BatchResult<Int>) -> ImageWorkerError? {
  do {
    _ = try result.result()
    return nil
  } catch { return error as? ImageWorkerError }
}

/// Items that count how many of them were taken.
struct Taken: Sequence, Sendable {
  let items: [Item<Int>]
  let count: @Sendable () -> Void

  func makeIterator() -> AnyIterator<Item<Int>> {
    var items = items.makeIterator()
    return AnyIterator {
      count()
      return items.next()
    }
  }
}

extension RetryPolicy {
  /// Short delays.
  static var quick: RetryPolicy {
    var policy = RetryPolicy()
    policy.initialDelay = .milliseconds(10)
    policy.maxDelay = .milliseconds(50)
    policy.giveUpAfter = .seconds(120)
    return policy
  }
}
