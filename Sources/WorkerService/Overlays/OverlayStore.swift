package import ImagePipeline
internal import Synchronization

/// The overlays of the operator that requests can name now: one set until another takes its place, whole.
package final class OverlayStore: Sendable {
  private let current: Mutex<AuxiliaryImages>

  /// Creates a store with the images of the operator.
  package init(_ images: [AuxiliaryImage] = []) {
    current = Mutex(AuxiliaryImages(images, cache: OverlayCache()))
  }

  /// The current overlays, which later replacements do not change.
  package var images: AuxiliaryImages { current.withLock { $0 } }

  /// Requests from now on find these; those that are under way keep what they found.
  package func replace(with images: [AuxiliaryImage]) {
    current.withLock { $0 = AuxiliaryImages(images, cache: $0.cache) }
  }
}
