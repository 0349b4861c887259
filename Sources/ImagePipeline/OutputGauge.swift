/// Counts the compressed bytes that the caller has not read yet, so that work can pause when too many are waiting.
///
/// It is a class because all renditions of an image and their stages share it.
final class OutputGauge {
  /// The number of waiting bytes at which stages stop producing output.
  static let maxByteCount = 512 * 1024

  private var byteCount = 0

  /// Whether enough output is waiting that work must pause.
  var isFull: Bool { byteCount >= Self.maxByteCount }

  /// Counts `byteCount` bytes of new output.
  func add(_ byteCount: Int) { self.byteCount += byteCount }

  /// Resets the count, after the caller has read all output.
  func reset() { byteCount = 0 }
}

/// The state of the work after a portion of an image's bytes.
package enum PipelineProgress: Sendable {
  /// Every byte was consumed; more bytes are needed.
  case needsInput
  /// Enough output is waiting; the next call continues with the unconsumed bytes, even if there are none.
  case paused
  /// Every rendition has ended; further bytes are ignored.
  case done
}
