internal import ServiceLifecycle
internal import Synchronization
internal import UnixSignals
internal import WorkerOperations

/// Reads the files of certificates and identities again when they change, and at each SIGHUP.
struct SecurityReloader: Service {
  let security: Security
  let interval: Duration
  let signals: UnixSignalsSequence

  /// Signals are received from here on.
  init(_ security: Security, interval: Duration) async {
    self.security = security
    self.interval = interval
    signals = await UnixSignalsSequence(trapping: .sighup)
  }

  func run() async throws {
    try await withThrowingDiscardingTaskGroup { group in
      group.addTask {
        for await _ in signals.cancelOnGracefulShutdown() { security.reload() }
      }
      group.addTask {
        _ = try? await cancelWhenGracefulShutdown {
          while !Task.isCancelled {
            try await Task.sleep(for: interval)
            security.reload()
          }
        }
      }
    }
  }
}

/// The contents that files had when they were last read, so that each change is tried, and logged, once.
///
/// Contents are compared instead of times, because files that are replaced together are seen in any state between.
final class Seen: Sendable {
  private struct State {
    var material: TLSMaterial?
    var identities: String?
    var tlsFailure = ""
    var identitiesFailure = ""
  }

  private let state: Mutex<State>

  init(material: TLSMaterial?, identities: String?) {
    state = Mutex(State(material: material, identities: identities))
  }

  func isNew(_ material: TLSMaterial) -> Bool {
    state.withLock { state in
      state.tlsFailure = ""
      defer { state.material = material }
      return state.material != material
    }
  }

  func isNew(identities: String) -> Bool {
    state.withLock { state in
      state.identitiesFailure = ""
      defer { state.identities = identities }
      return state.identities != identities
    }
  }

  func isNew(failure: String, ofTLS: Bool) -> Bool {
    state.withLock { state in
      let path: WritableKeyPath<State, String> = ofTLS ? \.tlsFailure : \.identitiesFailure
      defer { state[keyPath: path] = failure }
      return state[keyPath: path] != failure
    }
  }
}
