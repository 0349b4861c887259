package import ImagePipeline
internal import Synchronization

/// A value that all calls read, until another takes its place, whole.
package final class Replaceable<Value: Sendable>: Sendable {
  private let current: Mutex<Value>

  /// Creates a holder with its first value.
  package init(_ value: Value) { current = Mutex(value) }

  /// The current value, which later replacements do not change.
  package var value: Value { current.withLock { $0 } }

  /// Requests from now on find this value; those that are under way keep what they found.
  package func replace(with value: Value) { current.withLock { $0 = value } }
}

extension Replaceable<AuxiliaryImages> {
  /// Replaces the images; what is decoded of them stays in the same cache.
  package func replace(with images: [AuxiliaryImage]) {
    current.withLock { $0 = AuxiliaryImages(images, cache: $0.cache) }
  }
}
