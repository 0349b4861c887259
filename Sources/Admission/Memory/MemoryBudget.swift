package import ImagePipeline
internal import Synchronization
internal import WorkThreads

/// The memory budget that all images of a worker share, assigned in order of arrival.
///
/// An image reserves the working set of its plan before decoding, and waits while other reservations leave too little
/// room. Small images may bypass a large one at the head of the queue if there is room for both: the total that has
/// bypassed it is limited so that it still fits alongside. The head therefore waits only for images that were admitted
/// before it reached the head.
///
/// Images whose bytes are still arriving leave a quarter to the others, except for the only one. While the head waits for
/// this, all images whose bytes have arrived may bypass it, and no upload.
///
/// Uploads are buffered before they have a plan if their format stores its header at the end. Buffered bytes may use up
/// to half of the limit together with received messages (`MemoryBudget+Messages.swift`), and count together with the
/// reservations. There is one exception: while nothing is reserved, the head of the queue is admitted regardless of the
/// buffered bytes, as otherwise uploads that wait for memory would wait for each other. The total therefore never
/// exceeds 1.5 times the limit, and exceeds the limit only while a single image that needs more than half of it is
/// being processed; with helper processes, these take up to a quarter of it besides.
package final class MemoryBudget: Sendable {
  /// An image that waits; its wait ends without an admission if it is cancelled.
  struct Entry {
    let byteCount: Int
    let isUpload: Bool
    let waiter = Waiter<Admission?>()
  }

  /// The way in which an image was admitted.
  enum Admission: Sendable {
    /// In order of arrival.
    case inTurn
    /// Ahead of an image that arrived earlier.
    case passing
  }

  struct State {
    var used = 0
    /// The part of `used` that bypassed the head of the queue, in bytes.
    var passed = 0
    /// The part of `used` that depends on clients who have not sent all bytes, in bytes.
    var uploading = 0
    var buffered = 0
    var peak = 0
    var waiting: [Entry] = []
    var messages: MessageQueue
    /// Bytes that open connections and calls take.
    var occupied = 0
    /// Bytes that other processes take for images.
    var processes = 0
  }

  /// The maximum number of bytes that all images may reserve together.
  package let limit: Int
  /// The maximum number of images that may wait.
  package let maxWaiting: Int
  /// Whether the listener charges messages, so that images leave room for them and need not charge them again.
  package let receivesMessages: Bool
  let state: Mutex<State>
  let waited: WaitObserver

  /// Creates a budget of `limit` bytes in whose queue at most `maxWaiting` images wait.
  ///
  /// - `receivesMessages`: whether the listener charges messages.
  /// - `waited`: receives the waits of images and messages.
  package init(
    limit: Int, maxWaiting: Int, receivesMessages: Bool = false, waited: @escaping WaitObserver = { _, _ in }
  ) {
    self.limit = limit
    self.maxWaiting = maxWaiting
    self.receivesMessages = receivesMessages
    self.waited = waited
    state = Mutex(State(messages: MessageQueue(limit: limit / 8 * 3)))
  }

  /// The number of bytes that are currently reserved.
  package var used: Int { state.withLock { $0.used } }
  /// The number of bytes of uploads that are buffered without a plan.
  package var buffered: Int { state.withLock { $0.buffered } }
  /// The maximum number of bytes that uploads without a plan may buffer together.
  package var reservationLimit: Int { limit / 2 }
  /// The maximum number of bytes that were reserved at once.
  package var peak: Int { state.withLock { $0.peak } }
  /// The number of bytes that other processes take for images.
  package var processes: Int { state.withLock { $0.processes } }
  /// The number of images that are currently waiting.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Reserves `byteCount` bytes for the lifetime of the reservation, waiting in the queue if necessary.
  /// - Parameters:
  ///   - byteCount: The number of bytes to reserve.
  ///   - isUpload: Whether the image's bytes are still arriving, until `endUpload` is called. Such images leave a quarter of
  ///     the memory to others, except for the only one.
  ///   - cancellation: Ends the wait when it is cancelled.
  /// - Returns: The reservation, which returns its memory when it is destroyed.
  /// - Throws: `limitExceeded` if the bytes can never fit, `overloaded` if too many images are waiting already,
  ///   `cancelled`.
  package func reserve(
    _ byteCount: Int, isUpload: Bool, cancellation: Cancellation
  ) async throws(PipelineError) -> Reservation {
    try checkLimit(byteCount)
    try cancellation.check()
    let outcome = state.withLock {
      $0.take(byteCount, isUpload: isUpload, limit: imageLimit($0), maxWaiting: maxWaiting)
    }
    switch outcome {
    case .taken(let admission): return Reservation(byteCount: byteCount, admission: admission, budget: self)
    case .full:
      throw PipelineError(.overloaded, "\(maxWaiting) images are already waiting for memory; try again later")
    case .wait(let waiter):
      let began = ContinuousClock.now
      let admission = await waiter.outcome(or: nil, when: cancellation) { [self] in
        defer { admitWaiters() }
        return state.withLock { $0.waiting.removeFirst { $0.waiter === waiter } } != nil
      }
      waited(.memory, began.duration(to: .now))
      guard let admission else { throw .cancelled }
      return Reservation(byteCount: byteCount, admission: admission, budget: self)
    }
  }

  /// Reserves `byteCount` bytes for an image whose bytes have arrived, as above.
  package func reserve(_ byteCount: Int, cancellation: Cancellation) async throws(PipelineError) -> Reservation {
    try await reserve(byteCount, isUpload: false, cancellation: cancellation)
  }

  /// Reserves `byteCount` bytes without waiting, if there is room that waiting images do not need.
  /// - Parameters:
  ///   - byteCount: The number of bytes to reserve.
  ///   - isUpload: Whether the image's bytes are still arriving, as for `reserve`.
  /// - Returns: The reservation, which returns its memory when it is destroyed.
  /// - Throws: `limitExceeded` if the bytes can never fit, `overloaded` if they do not fit now.
  package func reserveNow(_ byteCount: Int, isUpload: Bool = false) throws(PipelineError) -> Reservation {
    try checkLimit(byteCount)
    let outcome = state.withLock { $0.take(byteCount, isUpload: isUpload, limit: imageLimit($0), maxWaiting: 0) }
    guard case .taken(let admission) = outcome else {
      throw PipelineError(
        .overloaded, "\(byteCount) bytes of memory are not free: \(used) of \(limit) are in use; try again later")
    }
    return Reservation(byteCount: byteCount, admission: admission, budget: self)
  }

  /// Reserves `byteCount` bytes for an image whose needs are not known yet, if no image waits and half of the budget
  /// remains.
  /// - Returns: The reservation, to be shrunk to what the image needs; `nil` if memory is not plentiful.
  package func reserveSpare(_ byteCount: Int) -> Reservation? {
    guard waitingCount == 0, byteCount <= limit / 2 - used else { return nil }
    return try? reserveNow(byteCount)
  }

  /// Notes that all bytes of an image have arrived, for which `byteCount` bytes were reserved as those of an upload, or that
  /// it has ended.
  package func endUpload(_ byteCount: Int) {
    state.withLock { $0.uploading -= byteCount }
    admitWaiters()
  }

  /// Counts `byteCount` more buffered bytes for an upload that has already buffered `own` bytes.
  /// - Throws: `limitExceeded` if the total can never fit, `overloaded` if it does not fit now.
  func hold(_ byteCount: Int, beside own: Int) throws(PipelineError) {
    guard own + byteCount <= reservationLimit else {
      throw PipelineError(
        exceeding: "memory_limit", limit: UInt64(reservationLimit), value: UInt64(own + byteCount),
        unit: "bytes to buffer its file, which may use half of the memory")
    }
    guard let others = holdIfFree(byteCount) else { return }
    throw PipelineError(
      .overloaded,
      "\(own + byteCount) bytes to buffer the file are not free: other files use \(others - own) of "
        + "\(reservationLimit); try again later")
  }

  /// Counts `byteCount` more buffered bytes, if there is room for them.
  /// - Returns: The number of bytes that leave no room; `nil` if the bytes are counted.
  func holdIfFree(_ byteCount: Int) -> Int? {
    state.withLock { state in
      let others = state.buffered + state.messages.byteCount
      guard others + byteCount <= reservationLimit else { return others }
      state.buffered += byteCount
      return nil
    }
  }

  /// Counts `byteCount` bytes of a message as buffered until `endHold`, while its image has no plan.
  ///
  /// It leaves as much room for small messages as large messages do.
  /// - Returns: Whether there was room for them.
  package func holdNow(_ byteCount: Int) -> Bool {
    state.withLock { state in
      let room = reservationLimit - state.messages.reserve - state.buffered - state.messages.byteCount
      guard byteCount <= room else { return false }
      state.buffered += byteCount
      return true
    }
  }

  /// Stops counting `byteCount` bytes that are buffered.
  package func endHold(_ byteCount: Int) {
    state.withLock { $0.buffered -= byteCount }
    admitWaiters()
  }

  /// Adds bytes of other processes, or removes them if they are fewer than 0.
  func charge(processByteCount byteCount: Int) {
    state.withLock { $0.processes += byteCount }
    if byteCount < 0 { admitWaiters() }
  }

  private func checkLimit(_ byteCount: Int) throws(PipelineError) {
    guard byteCount > limit else { return }
    throw PipelineError(
      exceeding: "memory_limit", limit: UInt64(limit), value: UInt64(byteCount), unit: "bytes of memory")
  }

  fileprivate func release(_ byteCount: Int, _ admission: Admission) {
    state.withLock { state in
      state.used -= byteCount
      if admission == .passing { state.passed -= byteCount }
    }
    admitWaiters()
  }

  func admitWaiters() {
    let (messages, admitted) = state.withLock { state in
      let messages = state.messages.grant(room: messageRoom(state), now: .now)
      return (messages, state.admitWaiters(limit: imageLimit(state)))
    }
    for message in messages { message.request.grant() }
    for (entry, admission) in admitted { entry.waiter.end(admission) }
  }

  /// The part of the budget that messages may use together, in bytes.
  func messageRoom(_ state: borrowing State) -> Int {
    min(limit - state.used - state.buffered - state.occupied - state.processes, reservationLimit - state.buffered)
  }

  /// The part of the budget that images and uploads may use together, in bytes: all but what messages use or need next.
  private func imageLimit(_ state: borrowing State) -> Int {
    let kept = max(state.messages.demand, receivesMessages ? state.messages.reserve : 0)
    return limit - state.occupied - state.processes
      - max(state.messages.byteCount, min(kept + state.messages.byteCount, state.messages.limit))
  }
}

/// Memory that is reserved for one image; it is returned to the budget when the reservation is destroyed.
package struct Reservation: ~Copyable, Sendable {
  /// The size of the reservation in bytes.
  package private(set) var byteCount: Int
  private let admission: MemoryBudget.Admission
  private let budget: MemoryBudget

  fileprivate init(byteCount: Int, admission: MemoryBudget.Admission, budget: MemoryBudget) {
    self.byteCount = byteCount
    self.admission = admission
    self.budget = budget
  }

  deinit { budget.release(byteCount, admission) }

  /// Returns what exceeds `byteCount` bytes to the budget.
  package mutating func shrink(to byteCount: Int) {
    guard byteCount < self.byteCount else { return }
    budget.release(self.byteCount - byteCount, admission)
    self.byteCount = byteCount
  }
}
