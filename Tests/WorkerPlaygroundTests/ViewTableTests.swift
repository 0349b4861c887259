import GRPCCore
import Synchronization
import Testing

@testable import WorkerPlayground

@Suite("View table")
struct ViewTableTests {
  /// Whether a call was cancelled when its work began.
  private func isCancelled(_ call: PlaygroundCall) async -> Bool {
    let isCancelled = Mutex(false)
    await call.run { handle in isCancelled.withLock { $0 = handle.isCancelled } }
    return isCancelled.withLock { $0 }
  }

  @Test("cancels the former call of a view, and no other")
  func newest() async {
    let views = ViewTable()
    let other = views.begin("other")
    let first = views.begin("view")
    let second = views.begin("view")
    #expect(await isCancelled(first))
    #expect(await !isCancelled(second))
    #expect(await !isCancelled(other))
    views.end("view", first)
    #expect(views.count == 2)
    views.end("view", second)
    views.end("other", other)
    #expect(views.count == 0)
  }

  @Test("cancels all calls when it is closed, and those that begin later")
  func close() async {
    let views = ViewTable()
    let (first, second) = (views.begin("first"), views.begin("second"))
    views.close()
    #expect(await isCancelled(first))
    #expect(await isCancelled(second))
    #expect(await isCancelled(views.begin("third")))
  }

  @Test("cancels a call that has begun")
  func running() async {
    let views = ViewTable()
    let call = views.begin("view")
    let isCancelled = Mutex(false)
    await call.run { handle in
      _ = views.begin("view")
      isCancelled.withLock { $0 = handle.isCancelled }
    }
    #expect(isCancelled.withLock { $0 })
  }
}
