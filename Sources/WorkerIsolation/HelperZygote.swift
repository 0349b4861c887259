internal import CSandbox
internal import LibC
internal import Synchronization

/// The process that forks helpers, started anew if it has ended.
///
/// Helpers have the addresses of the zygote that forked them. After a crash, from which somebody may have learned about
/// them, `renew` lets another zygote fork the next helpers; the old one remains until its helpers have ended. So does one
/// that was found stopped (`replaceIfLost`).
package final class HelperZygote: Sendable {
  /// A running zygote.
  private struct Generation {
    var zygote: csandbox_zygote
    /// The helpers that are not discarded.
    var helpers: Set<UInt32> = []
    /// The wait statuses of helpers that have ended and are not discarded yet.
    var statuses: [UInt32: Int32] = [:]
  }

  private struct State {
    /// The running zygotes by number.
    var generations: [Int: Generation] = [:]
    var nextID: UInt32 = 0
    /// The number of zygotes that were replaced because they were stopped or had ended.
    var replacedCount: UInt64 = 0
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
  /// The interval in milliseconds at which a zygote that does not answer is checked.
  private static let checkInterval: Int32 = 100
  /// The time in milliseconds within which the end of a helper is reported after its channel has closed.
  private static let endTimeout: Int32 = 2000
  /// The interval in milliseconds at which that report is looked for.
  private static let endInterval: Int32 = 2

  private let program: String
  private let arguments: [String]
  private let state = Mutex(State())
  /// The number of the zygote that forks helpers, whether it runs yet or not; changed with the lock.
  private let current = Atomic(0)

  /// Creates a zygote, which is started with the first helper.
  ///
  /// - `program`: the path of the executable; by default, that of this process.
  /// - `arguments`: the arguments after the program's name, with which it calls `HelperProcess.serve`.
  package init(program: String = "/proc/self/exe", arguments: [String]) {
    self.program = program
    self.arguments = arguments
  }

  deinit {
    state.withLock { state in for number in state.generations.keys { Self.stop(number, &state) } }
  }

  /// The process id of the zygote that forks; `nil` while none is running.
  package var processID: Int32? { state.withLock { $0.generations[currentNumber]?.zygote.pid } }

  private var currentNumber: Int { current.load(ordering: .acquiring) }

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
    let number = currentNumber
    Self.drain(number, &state)
    var channel = csandbox_channel()
    guard csandbox_channel_create(HelperLayout.current.byteCount, &channel) else {
      throw .notStarted("no memory or descriptors: error \(errno)")
    }
    var isStarted = false
    defer { if !isStarted { csandbox_channel_destroy(&channel) } }
    state.nextID &+= 1
    let id = state.nextID
    guard csandbox_zygote_fork(&zygote, id, &channel), let event = try Self.started(id, number, &state) else {
      // One that is only stopped obeys when it is continued.
      _ = csandbox_zygote_discard(&zygote, id)
      replace(number, &state)
      return nil
    }
    isStarted = true
    state.generations[number]?.helpers.insert(id)
    return HelperProcess(
      channel, id: id, generation: number, processID: event.pid, initialByteCount: event.data_bytes, zygote: self)
  }

  private func running(_ state: inout State) throws(HelperLoss) -> csandbox_zygote {
    if let generation = state.generations[currentNumber] { return generation.zygote }
    var zygote = csandbox_zygote()
    var strings: [UnsafeMutablePointer<CChar>?] = (["image-worker"] + arguments).map { strdup($0) } + [nil]
    defer { for string in strings { free(string) } }
    let status = csandbox_zygote_spawn(program, &strings, &zygote)
    guard status == 0 else { throw .notStarted("\(program) cannot be executed: error \(status)") }
    let number = current.add(1, ordering: .acquiringAndReleasing).newValue
    state.generations[number] = Generation(zygote: zygote)
    return zygote
  }

  /// Waits until a helper has started; returns `nil` if the zygote has ended, or can fork no more.
  ///
  /// In a namespace whose first process was killed every fork fails, with `ENOMEM`.
  /// - Throws: `notStarted` at a limit of processes, which is no fault of the zygote and its helpers.
  private static func started(
    _ id: UInt32, _ number: Int, _ state: inout State
  ) throws(HelperLoss) -> csandbox_event? {
    guard var zygote = state.generations[number]?.zygote else { return nil }
    var event = csandbox_event()
    var waited: Int32 = 0
    while waited < startTimeout {
      let received = csandbox_zygote_next(&zygote, &event, checkInterval)
      if received == 0 {
        guard csandbox_zygote_state_now(&zygote) == CSANDBOX_RUNS.rawValue else { return nil }
        waited += checkInterval
        continue
      }
      guard received == 1 else { return nil }
      switch csandbox_event_kind(event.kind) {
      case CSANDBOX_STARTED where event.id == id: return event
      case CSANDBOX_NOT_STARTED where event.id == id && event.status == EAGAIN:
        throw .notStarted("the system has no room for another process")
      case CSANDBOX_ENDED: state.generations[number]?.statuses[event.id] = event.status
      default: return nil
      }
    }
    return nil
  }

  // MARK: Replacement

  /// The number of zygotes that were replaced because they were stopped or had ended.
  package var replacedCount: UInt64 { state.withLock { $0.replacedCount } }

  /// Lets another zygote fork the next helpers if this one is stopped or has ended.
  /// - Returns: Whether it was replaced.
  package func replaceIfLost() -> Bool {
    state.withLock { state in
      let number = currentNumber
      guard var zygote = state.generations[number]?.zygote,
        csandbox_zygote_state_now(&zygote) != CSANDBOX_RUNS.rawValue
      else { return false }
      replace(number, &state)
      return true
    }
  }

  /// Lets another zygote fork the next helpers.
  ///
  /// A stopped one is continued and remains until its helpers have ended; they would end with it.
  private func replace(_ number: Int, _ state: inout State) {
    guard var zygote = state.generations[number]?.zygote else { return }
    state.replacedCount += 1
    guard csandbox_zygote_state_now(&zygote) == CSANDBOX_IS_STOPPED.rawValue else { return Self.stop(number, &state) }
    csandbox_zygote_continue(&zygote)
    current.add(1, ordering: .acquiringAndReleasing)
    stopIfUnused(number, &state)
  }

  /// Notes the helpers whose end was reported.
  private static func drain(_ number: Int, _ state: inout State) {
    guard var zygote = state.generations[number]?.zygote else { return }
    var event = csandbox_event()
    while csandbox_zygote_next(&zygote, &event, 0) == 1 {
      state.generations[number]?.statuses[event.id] = event.status
    }
  }

  private static func stop(_ number: Int, _ state: inout State) {
    guard var generation = state.generations.removeValue(forKey: number) else { return }
    csandbox_zygote_destroy(&generation.zygote)
  }

  /// Ends a zygote that forks no more helpers and has none.
  private func stopIfUnused(_ number: Int, _ state: inout State) {
    if number != currentNumber, state.generations[number]?.helpers.isEmpty ?? false { Self.stop(number, &state) }
  }

  /// Whether helpers are still forked with the addresses of a zygote.
  func isCurrent(_ generation: Int) -> Bool { currentNumber == generation }

  /// Lets another zygote fork the next helpers.
  /// - `generation`: the zygote that must not fork any more; it does nothing if that is another one already.
  func renew(after generation: Int) {
    state.withLock { state in
      guard currentNumber == generation else { return }
      current.add(1, ordering: .acquiringAndReleasing)
      stopIfUnused(generation, &state)
    }
  }

  /// Returns why a helper's channel has closed.
  func loss(of id: UInt32, generation: Int) -> HelperLoss {
    for _ in 0..<(Self.endTimeout / Self.endInterval) {
      let (status, isRunning): (Int32?, Bool) = state.withLock { state in
        Self.drain(generation, &state)
        guard let running = state.generations[generation] else { return (nil, false) }
        var zygote = running.zygote
        return (running.statuses[id], csandbox_zygote_state_now(&zygote) != CSANDBOX_HAS_ENDED.rawValue)
      }
      if let status { return Self.loss(status) }
      guard isRunning else { return .orphaned }
      // Without the lock: other images must not wait for a helper that has only closed its channel.
      usleep(UInt32(Self.endInterval) * 1000)
    }
    return .signaled(SIGKILL)
  }

  private static func loss(_ status: Int32) -> HelperLoss {
    var signal: Int32 = 0
    guard csandbox_was_signaled(status, &signal) else { return loss(exitStatus: status >> 8) }
    return signal == SIGXCPU ? .exceededCPUTime : .signaled(signal)
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
      guard state.generations[generation]?.helpers.remove(id) != nil,
        var zygote = state.generations[generation]?.zygote
      else { return }
      _ = csandbox_zygote_discard(&zygote, id)
      state.generations[generation]?.statuses[id] = nil
      stopIfUnused(generation, &state)
    }
  }
}
