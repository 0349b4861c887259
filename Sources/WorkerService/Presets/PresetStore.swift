package import ImagePipeline
internal import Synchronization

/// The presets that requests can name now: one set until another takes its place, whole.
package final class PresetStore: Sendable {
  private let current: Mutex<PresetCatalog>

  /// Creates a store with the presets of `catalog`.
  package init(_ catalog: PresetCatalog = PresetCatalog()) {
    current = Mutex(catalog)
  }

  /// A copy of the current presets, which later replacements do not change.
  package var catalog: PresetCatalog { current.withLock { $0 } }

  /// Requests from now on find these; those that are under way keep what they found.
  package func replace(with catalog: PresetCatalog) { current.withLock { $0 = catalog } }
}
