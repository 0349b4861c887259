internal import ImagePipeline
internal import Logging
internal import ServiceLifecycle
internal import UnixSignals
internal import WorkerService

/// Reads the file of presets again at each SIGHUP.
///
/// A file that can't be used leaves the presets as they are.
struct PresetReloader: Service {
  let source: PresetSource
  let store: PresetStore
  let signals: UnixSignalsSequence
  let logger: Logger

  /// Signals are taken from here on, before anybody can know that they are.
  init(source: PresetSource, store: PresetStore, logger: Logger) async {
    self.source = source
    self.store = store
    self.logger = logger
    signals = await UnixSignalsSequence(trapping: .sighup)
  }

  func run() async throws {
    for await _ in signals.cancelOnGracefulShutdown() { reload() }
  }

  private func reload() {
    do {
      let catalog = try source.read()
      store.replace(with: catalog)
      logger.notice(
        "presets reloaded", metadata: ["file": "\(source.path)", "presets": "\(catalog.presets.count)"])
    } catch {
      logger.error(
        "the presets file cannot be used; the previous presets stay in effect", metadata: ["error": "\(error)"])
    }
  }
}
