internal import GRPCCore
internal import Synchronization

/// Writes responses that are ready together in one go, as each write wakes the connection's event loop.
///
/// What is held when its picture fails is never written: nobody needs the header of a result that does not come.
final class Outbox<Response: Sendable>: Sendable {
  private let writer: RPCWriter<Response>
  private let held = Mutex<[Response]>([])

  /// Of chunks half a megabyte, which is what a connection takes at a time.
  private let mostHeld = 8

  init(_ writer: RPCWriter<Response>) { self.writer = writer }

  /// Writes a response and those that wait for it, or lets it wait where `isMoreReady` says that another follows at once.
  func send(_ response: Response, isMoreReady: Bool) async throws {
    let ready: [Response] = held.withLock { held in
      held.append(response)
      guard !isMoreReady || held.count == mostHeld else { return [] }
      defer { held = [] }
      return held
    }
    if !ready.isEmpty { try await writer.write(contentsOf: ready) }
  }
}
