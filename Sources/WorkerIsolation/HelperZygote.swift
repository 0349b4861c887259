internal import CSandbox
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// The process that forks helpers, started anew if it has ended.
package final class HelperZygote: Sendable {
  private struct State {
    var zygote: csandbox_zygote?
    /// Increases with each process that is started.
    var generation = 0
    var nextID: UInt32 = 0
    /// The wait statuses of helpers that have ended and are not discarded yet.
    var statuses: [UInt32: Int32] = [:]
  }

  /// Whether this build can isolate helpers.
  package static var isSupported: Bool { csandbox_is_supported() }

  /// The version of libseccomp; `nil` in a build without it.
  package static var libraryVersion: String? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { text in
      csandbox_library_version(text.baseAddress, text.count) ? text.baseAddress.map { String(cString: $0) } : nil
    }
  }

  /// The time in milliseconds within which a helper starts, even on a machine that is busy.
  private static let startTimeout: Int32 = 20_000
  /// The time in milliseconds within which the end of a helper is reported after its channel has closed.
  private static let endTimeout: Int32 = 2000

  private let program: String
  private let arguments: [String]
  private let state = Mutex(State())

  /// Creates a zygote, which is started with the first helper.
  ///
  /// - `program`: the path of the executable; by default, that of this process.
  /// - `arguments`: the arguments after the program's name, with which it calls `HelperProcess.serve`.
  package init(program: String = "/proc/self/exe", arguments: [String]) {
    self.program = program
    self.arguments = arguments
  }

  deinit { state.withLock { Self.stop(&$0) } }

  /// The process id of the zygote; `nil` while it is not running.
  package var processID: Int32? { state.withLock { $0.zygote?.pid } }

  /// Starts a helper, which is ready for requests when this function returns or soon after.
  /// - Throws: `notStarted`.
  package func start() throws(HelperLoss) -> HelperProcess {
    guard Self.isSupported else { throw .notStarted("this build has no sandbox") }
    return try state.withLock { state throws(HelperLoss) in
      // A zygote that has ended is noticed by its socket, so the second attempt has a new one.
      if let helper = try fork(&state) { return helper }
      guard let helper = try fork(&state) else { throw .notStarted("the process that starts helpers has ended") }
      return helper
    }
  }

  /// Starts a helper; returns `nil` if the zygote has ended.
  private func fork(_ state: inout State) throws(HelperLoss) -> HelperProcess? {
    var zygote = try running(&state)
    drain(&state)
    var channel = csandbox_channel()
    guard csandbox_channel_create(HelperLayout.current.byteCount, &channel) else {
      throw .notStarted("no memory or descriptors: error \(errno)")
    }
    state.nextID &+= 1
    let id = state.nextID
    guard csandbox_zygote_fork(&zygote, id, &channel), let event = Self.started(id, &state) else {
      csandbox_channel_destroy(&channel)
      Self.stop(&state)
      return nil
    }
    return HelperProcess(
      channel, id: id, generation: state.generation, processID: event.pid, initialByteCount: event.data_bytes,
      zygote: self)
  }

  private func running(_ state: inout State) throws(HelperLoss) -> csandbox_zygote {
    if let zygote = state.zygote { return zygote }
    var zygote = csandbox_zygote()
    var strings: [UnsafeMutablePointer<CChar>?] = (["image-worker"] + arguments).map { strdup($0) } + [nil]
    defer { for string in strings { free(string) } }
    let status = csandbox_zygote_spawn(program, &strings, &zygote)
    guard status == 0 else { throw .notStarted("\(program) cannot be executed: error \(status)") }
    state.zygote = zygote
    state.generation += 1
    state.statuses = [:]
    return zygote
  }

  /// Waits until a helper has started; returns `nil` if the zygote has ended or cannot fork.
  private static func started(_ id: UInt32, _ state: inout State) -> csandbox_event? {
    guard var zygote = state.zygote else { return nil }
    var event = csandbox_event()
    while csandbox_zygote_next(&zygote, &event, startTimeout) == 1 {
      switch csandbox_event_kind(event.kind) {
      case CSANDBOX_STARTED where event.id == id: return event
      case CSANDBOX_ENDED: state.statuses[event.id] = event.status
      default: return nil
      }
    }
    return nil
  }

  /// Notes the helpers whose end was reported.
  private func drain(_ state: inout State) {
    guard var zygote = state.zygote else { return }
    var event = csandbox_event()
    while csandbox_zygote_next(&zygote, &event, 0) == 1 { state.statuses[event.id] = event.status }
  }

  private static func stop(_ state: inout State) {
    guard var zygote = state.zygote else { return }
    csandbox_zygote_destroy(&zygote)
    state.zygote = nil
  }

  /// Returns why a helper's channel has closed.
  func loss(of id: UInt32, generation: Int) -> HelperLoss {
    state.withLock { state in
      guard state.generation == generation, var zygote = state.zygote else { return .signaled(SIGKILL) }
      var event = csandbox_event()
      while state.statuses[id] == nil, csandbox_zygote_next(&zygote, &event, Self.endTimeout) == 1 {
        state.statuses[event.id] = event.status
      }
      guard let status = state.statuses[id] else { return .signaled(SIGKILL) }
      var signal: Int32 = 0
      guard csandbox_was_signaled(status, &signal) else { return Self.loss(exitStatus: status >> 8) }
      return signal == SIGXCPU ? .exceededCPUTime : .signaled(signal)
    }
  }

  private static func loss(exitStatus: Int32) -> HelperLoss {
    switch csandbox_exit_status(UInt32(bitPattern: exitStatus)) {
    case CSANDBOX_EXIT_NO_SANDBOX: .notStarted("the system refuses its limits or its system call filter")
    case CSANDBOX_EXIT_NO_MEMORY: .exceededMemory
    default: .exited(status: exitStatus)
    }
  }

  /// Ends a helper, whose process id may be used again afterwards.
  func discard(_ id: UInt32, generation: Int) {
    state.withLock { state in
      guard state.generation == generation, var zygote = state.zygote else { return }
      _ = csandbox_zygote_discard(&zygote, id)
      state.statuses[id] = nil
    }
  }
}
