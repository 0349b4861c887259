internal import ImagePipeline
internal import Synchronization

/// Admission for the pictures of one batch stream.
///
/// An upload that waits for memory is not read on, and so holds up the stream behind it. If another upload of the same
/// stream already held memory, it could never finish, because its next bytes stand behind those of the one that waits:
/// each would wait for the other. So at most one unfinished upload of a stream waits, and only while no other
/// unfinished upload of that stream holds memory; otherwise it is refused, to be sent again.
final class StreamAdmission: Sendable {
  private struct State {
    var unfinishedAdmitted = 0
    var isOneWaiting = false
  }

  private let memory: MemoryBudget
  private let state = Mutex(State())

  init(memory: MemoryBudget) {
    self.memory = memory
  }

  /// Sets memory aside for an upload whose bytes are all here: it can wait without harm.
  func admitComplete(_ byteCount: Int, cancellation: Cancellation) async throws(PipelineError) -> Reservation {
    try await memory.reserve(byteCount, cancellation: cancellation)
  }

  /// Sets memory aside for an upload whose bytes still arrive.
  ///
  /// Call `uploadFinished` when its last byte is here or it is given up, if this returned.
  func admitUnfinished(_ byteCount: Int, cancellation: Cancellation) async throws(PipelineError) -> Reservation {
    let mayWait = state.withLock { state in
      guard state.unfinishedAdmitted == 0, !state.isOneWaiting else { return false }
      state.isOneWaiting = true
      return true
    }
    if mayWait {
      defer { state.withLock { $0.isOneWaiting = false } }
      let reservation = try await memory.reserve(byteCount, cancellation: cancellation)
      state.withLock { $0.unfinishedAdmitted += 1 }
      return reservation
    }
    let reservation = try memory.reserveNow(byteCount)
    state.withLock { $0.unfinishedAdmitted += 1 }
    return reservation
  }

  func uploadFinished() {
    state.withLock { $0.unfinishedAdmitted -= 1 }
  }
}

/// One upload's hold on its stream's admission; let go of once.
final class UploadAdmission: Sendable {
  private let stream: StreamAdmission
  private let isHeld = Mutex(false)

  init(_ stream: StreamAdmission) {
    self.stream = stream
  }

  func admit(
    _ byteCount: Int, isComplete: Bool, cancellation: Cancellation
  ) async throws(PipelineError) -> Reservation {
    if isComplete { return try await stream.admitComplete(byteCount, cancellation: cancellation) }
    let reservation = try await stream.admitUnfinished(byteCount, cancellation: cancellation)
    isHeld.withLock { $0 = true }
    return reservation
  }

  /// The upload's bytes are all here, or it is given up.
  ///
  /// Repeating it is harmless.
  func release() {
    let wasHeld = isHeld.withLock { isHeld in
      defer { isHeld = false }
      return isHeld
    }
    if wasHeld { stream.uploadFinished() }
  }
}
