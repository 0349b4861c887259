/// Counts compressed bytes since their reader last took them, so that work pauses when enough of them wait.
///
/// A class because all renditions of an image, and their stages, share it.
final class OutputGauge {
  /// The bytes above which no stage begins anything that adds to them.
  static let maxByteCount = 512 * 1024

  private var byteCount = 0

  /// Whether enough output waits.
  var isFull: Bool { byteCount >= Self.maxByteCount }

  func add(_ byteCount: Int) { self.byteCount += byteCount }

  /// The reader took everything.
  func reset() { byteCount = 0 }
}

/// How far the work on a portion of an image's bytes got.
package enum PipelineProgress: Sendable {
  /// Every byte was consumed, and more are needed.
  case needsInput
  /// Enough output waits; the rest of the same bytes comes next, even if there is none.
  case paused
  /// Every rendition has ended. Bytes that follow are ignored.
  case done
}
