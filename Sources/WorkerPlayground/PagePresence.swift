internal import GRPCCore
internal import HummingbirdCore
internal import NIOCore

/// A response that lasts as long as its page: when its connection ends, the places of the page's images are given back.
struct PagePresence: Sendable {
  /// The time between two bytes, by which a machine that vanished is noticed.
  private static let interval = Duration.seconds(15)

  let page: String
  let uploads: UploadStore
  /// The responses in progress by their page: a newer one of a page replaces the one before.
  let pages: ViewTable

  /// Writes now and then until the page has gone, or the worker stops.
  func write(to writer: inout any ResponseBodyWriter, of request: Request) async throws {
    let call = pages.begin(page)
    defer { if pages.end(page, call) { uploads.removeAll(of: page) } }
    try await request.body.consumeWithInboundCloseHandler { _ in
      let beats = AsyncStream<Void>.makeStream()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          await call.run { handle in
            _ = try? await handle.cancelled
          }
          beats.continuation.finish()
        }
        group.addTask {
          while !Task.isCancelled {
            beats.continuation.yield()
            try await Task.sleep(for: Self.interval)
          }
        }
        defer { group.cancelAll() }
        do {
          for await _ in beats.stream { try await writer.write(ByteBuffer(string: "\n")) }
        } catch {
          call.cancel()
          throw error
        }
      }
      try await writer.finish(nil)
    } onInboundClosed: {
      call.cancel()
    }
  }
}
