internal import GRPCCore
package import ServiceContextModule
internal import Synchronization

/// A call that is open in the listener: what its handler and its interceptors need to know of it, and who reports its end.
package final class CallRecord: Sendable {
  private struct State {
    var deadline: CallDeadline?
    var callerName: String?
    var worked = Duration.zero
    var isClaimed = false
    var refusal: RequestRefusal?
    var isClientGone = false
    var isClosed = false
    var report: (@Sendable (RequestRefusal?) -> Void)?
    var kept: [any AnyObject & Sendable] = []
  }

  private let state = Mutex(State())

  /// The time at which the client stops waiting; `nil` if it set no timeout.
  package var deadline: ContinuousClock.Instant? { state.withLock { $0.deadline }?.clockInstant }

  /// Whether that time is over.
  var isLate: Bool { state.withLock { $0.deadline }?.hasPassed() ?? false }

  /// The name of the caller, as the `Authenticator` found it; `nil` if callers are not identified.
  package var callerName: String? { state.withLock { $0.callerName } }

  /// The work of image threads for the call.
  var worked: Duration { state.withLock { $0.worked } }

  /// Adds work of image threads.
  package func addWork(_ duration: Duration) { state.withLock { $0.worked += duration } }

  /// Notes the facts of a call that is accepted.
  func accept(deadline: CallDeadline?, callerName: String?) {
    state.withLock { ($0.deadline, $0.callerName) = (deadline, callerName) }
  }

  /// Returns `true` to the first caller, which must report the end of the call.
  func claim() -> Bool {
    state.withLock { state in
      defer { state.isClaimed = true }
      return !state.isClaimed
    }
  }

  /// Whether somebody reports the end of the call.
  var isClaimed: Bool { state.withLock { $0.isClaimed } }

  /// Why the listener ended the call; `nil` if it did not.
  var refusal: RequestRefusal? { state.withLock { $0.refusal } }

  /// Notes why the listener ends the call; the first reason counts.
  func note(_ refusal: RequestRefusal) { state.withLock { $0.refusal = $0.refusal ?? refusal } }

  /// Calls `report` when the call's stream is closed, with why the listener ended the call, if it did.
  ///
  /// A handler ends when its response is written; the client may never read it.
  func whenClosed(_ report: @escaping @Sendable (RequestRefusal?) -> Void) {
    let (isClosed, refusal) = state.withLock { state in
      if !state.isClosed { state.report = report }
      return (state.isClosed, state.refusal)
    }
    if isClosed { report(refusal) }
  }

  /// Keeps an object until the call's stream is closed; releases it at once if it is closed already.
  package func keep(_ object: any AnyObject & Sendable) {
    state.withLock { state in if !state.isClosed { state.kept.append(object) } }
  }

  /// Notes that the call's stream is closed.
  func close() {
    let (report, refusal, kept) = state.withLock { state in
      state.isClosed = true
      defer { state.kept = [] }
      return (state.report.take(), state.refusal, state.kept)
    }
    _ = kept  // released outside the lock
    report?(refusal)
  }

  /// Whether the client has cancelled the call or closed its connection before the whole response was written.
  var isClientGone: Bool { state.withLock { $0.isClientGone } }

  /// Notes that the client has cancelled the call or closed its connection.
  func noteClientGone() { state.withLock { $0.isClientGone = true } }
}

/// The open calls of a listener, by the number that it stores in the metadata of each.
final class CallRecords: Sendable {
  /// Metadata key of the number; a value sent by a client is discarded.
  static let key = "image-worker-call"

  private struct State {
    var lastID: UInt64 = 0
    var records: [UInt64: CallRecord] = [:]
  }

  private let state = Mutex(State())

  /// Adds a call; returns its number.
  func add(_ record: CallRecord) -> UInt64 {
    state.withLock { state in
      state.lastID += 1
      state.records[state.lastID] = record
      return state.lastID
    }
  }

  /// Removes a call that is not open any more.
  func remove(_ id: UInt64) { state.withLock { _ = $0.records.removeValue(forKey: id) } }

  /// Returns the call with this metadata; `nil` if it does not come from the listener.
  ///
  /// - Throws: CANCELLED for a call whose stream is closed; the end of it was reported.
  func record(_ metadata: Metadata) throws(RPCError) -> CallRecord? {
    let value = metadata[stringValues: Self.key].first { _ in true }
    guard let id = value.flatMap({ UInt64($0) }) else { return nil }
    guard let record = state.withLock({ $0.records[id] }) else {
      throw RPCError(code: .cancelled, message: "the stream of the call is closed")
    }
    return record
  }
}

extension ServiceContext {
  private enum CallKey: ServiceContextKey {
    typealias Value = CallRecord
  }

  /// The call in the listener; `nil` without one.
  package internal(set) var call: CallRecord? {
    get { self[CallKey.self] }
    set { self[CallKey.self] = newValue }
  }
}
