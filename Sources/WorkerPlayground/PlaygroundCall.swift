internal import GRPCCore
internal import Synchronization

/// A call of the page that can be cancelled at any time, before it has begun as well.
final class PlaygroundCall: Sendable {
  private struct State {
    var isCancelled = false
    var handle: ServerContext.RPCCancellationHandle?
  }

  private let state = Mutex(State())

  /// Runs the call with a handle that ends it when it is cancelled.
  func run(_ body: (ServerContext.RPCCancellationHandle) async -> Void) async {
    await withServerContextRPCCancellationHandle { handle in
      let isCancelled = state.withLock { state in
        state.handle = handle
        return state.isCancelled
      }
      if isCancelled { handle.cancel() }
      await body(handle)
    }
  }

  /// Ends the call.
  func cancel() {
    let handle = state.withLock { state in
      state.isCancelled = true
      return state.handle
    }
    handle?.cancel()
  }
}

/// The calls in progress by the view of a page that shows their results: the newest cancels the one before.
final class ViewTable: Sendable {
  private struct State {
    var calls: [String: PlaygroundCall] = [:]
    var isClosed = false
  }

  private let state = Mutex(State())

  func begin(_ view: String) -> PlaygroundCall {
    let call = PlaygroundCall()
    let (former, isClosed) = state.withLock { state in
      defer { state.calls[view] = call }
      return (state.calls[view], state.isClosed)
    }
    former?.cancel()
    if isClosed { call.cancel() }
    return call
  }

  /// Forgets a call that has ended.
  /// - Returns: Whether it was the newest of the view.
  @discardableResult
  func end(_ view: String, _ call: PlaygroundCall) -> Bool {
    state.withLock { state in
      guard state.calls[view] === call else { return false }
      state.calls[view] = nil
      return true
    }
  }

  /// Cancels the calls in progress, and those that begin afterwards.
  func close() {
    let calls = state.withLock { state in
      state.isClosed = true
      return state.calls.values
    }
    for call in calls { call.cancel() }
  }

  /// Whether `close` was called.
  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// The number of calls in progress.
  var count: Int { state.withLock { $0.calls.count } }
}
