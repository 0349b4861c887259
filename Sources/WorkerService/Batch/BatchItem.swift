internal import ImagePipeline
internal import Synchronization

/// An item of a batch stream while it is worked on: what stops it, and who took its place.
final class BatchItem: Sendable {
  let id: String
  /// The `preview_key` that it started with; empty for none.
  let key: String
  /// Set with the stream's, and when the item gives way.
  let cancellation: Cancellation
  private let stream: Cancellation
  private let handler: UInt64
  private let successor = Mutex<String?>(nil)

  static let longestKey = 256

  /// - `stream`: what stops all items of the stream. Call `release` when the item has ended.
  init(id: String, key: String, stream: Cancellation) {
    let cancellation = Cancellation()
    self.id = id
    self.key = key
    self.stream = stream
    self.cancellation = cancellation
    handler = stream.addHandler { cancellation.cancel() }
  }

  /// Forgets the stream.
  func release() { stream.removeHandler(handler) }

  /// Stops the item because the one with this id is of the same key.
  func giveWay(to id: String) {
    successor.withLock { $0 = $0 ?? id }
    cancellation.cancel()
  }

  /// Why there is no result, when `error` ended the work.
  func reason(_ error: any Error) -> any Error {
    guard let successor = successor.withLock({ $0 }) else { return error }
    return PipelineError(.cancelled, "item \(successor) with the same preview_key took its place")
  }

  /// - Throws: `invalidField` for a key that is too long.
  static func check(key: String) throws(PipelineError) {
    guard key.utf8.count > longestKey else { return }
    throw PipelineError(
      .invalidField, "preview_key has \(key.utf8.count) bytes; it may have \(longestKey)", field: "preview_key")
  }
}
