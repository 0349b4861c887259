/// Everything that an image or a message can wait for, in the order in which they pass it.
///
/// The article of this module has a row for each: who is first, and what ends it.
package enum Wait: String, Sendable, CaseIterable {
  /// A message waits for memory before its client may send its bytes: `MessageQueue`.
  case message
  /// An item of a batch waits for room on its stream, which is not read meanwhile: `ItemTable`.
  case item
  /// An image waits for a thread: `ThreadQueue`.
  case thread
  /// An upload waits for the next bytes of its client: `ProgressDeadline`.
  case input
  /// An image waits for an identical request in progress: `ResultCache`.
  case result
  /// An image waits for a helper process: `HelperPool`.
  case helper
  /// An image waits for the memory of its plan: `MemoryBudget`.
  case memory

  /// Its name in metrics.
  package var name: String { rawValue }
}

/// Receives the duration of each wait that has ended.
package typealias WaitObserver = @Sendable (Wait, Duration) -> Void
