import Logging
import Synchronization
import WorkThreads

@testable import WorkerOperations

/// An account of messages whose answers the test gives, and which records its calls.
final class MessageAccount: MessageMemory {
  struct State {
    /// The answer to each request; `nil` to let it wait until `grant`.
    var answer: MessageAnswer?
    var requests: [MessageRequest] = []
    var abandonedIDs: [UInt64] = []
    var releasedByteCount = 0
    var occupiedByteCount = 0
    var heldByteCount = 0
    var maxHeldByteCount = 0
    var receivedByteCount = 0
    /// The number of messages of which the last bytes were received.
    var receivedCount = 0
    /// The bytes that will not arrive, of each message.
    var lostByteCounts: [Int] = []
  }

  private let state: Mutex<State>
  private let occupies: Bool
  private let room: Int

  init(_ answer: MessageAnswer? = nil, occupies: Bool = true, room: Int = .max) {
    state = Mutex(State(answer: answer))
    self.occupies = occupies
    self.room = room
  }

  var now: State { state.withLock { $0 } }

  func answer(_ answer: MessageAnswer) { state.withLock { $0.answer = answer } }

  /// Grants the `index`th message.
  func grant(_ index: Int) { now.requests[index].grant() }

  /// Limits of a listener that charges messages to this account.
  var limits: ConnectionLimits {
    var limits = ConnectionLimits(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    limits.messages = self
    return limits
  }

  // MARK: MessageMemory

  func admit(_ request: MessageRequest) -> MessageAnswer {
    state.withLock { state in
      state.requests.append(request)
      return state.answer ?? .waiting(UInt64(state.requests.count))
    }
  }

  func abandonMessage(_ id: UInt64) -> Bool {
    state.withLock { $0.abandonedIDs.append(id) }
    return true
  }

  func releaseMessage(_ byteCount: Int, of connection: UInt64, isContinuation: Bool) {
    state.withLock { $0.releasedByteCount += byteCount }
  }

  func noteReceived(_ byteCount: Int, of connection: UInt64, isLast: Bool) {
    state.withLock { state in
      state.receivedByteCount += byteCount
      if isLast { state.receivedCount += 1 }
    }
  }

  func noteAbandoned(_ byteCount: Int, of connection: UInt64) {
    state.withLock { $0.lostByteCounts.append(byteCount) }
  }

  func openWindow(_ byteCount: Int) -> Claim? { nil }

  func occupy(_ byteCount: Int, isFirst: Bool) -> Claim? {
    guard occupies else { return nil }
    state.withLock { $0.occupiedByteCount += byteCount }
    return Claim { [self] in state.withLock { $0.occupiedByteCount -= byteCount } }
  }

  func holdNow(_ byteCount: Int) -> Bool {
    state.withLock { state in
      guard state.heldByteCount + byteCount <= room else { return false }
      state.heldByteCount += byteCount
      state.maxHeldByteCount = max(state.maxHeldByteCount, state.heldByteCount)
      return true
    }
  }

  func endHold(_ byteCount: Int) { state.withLock { $0.heldByteCount -= byteCount } }
}
