internal import Dispatch

/// Calls that block a thread, such as reading a file, away from the threads that run tasks.
enum BlockingWork {
  private static let queue = DispatchQueue(label: "image-worker files", attributes: .concurrent)

  static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result(catching: body)) }
    }
  }
}
