internal import AsyncAlgorithms
internal import FoundationEssentials
internal import ImagePipeline

/// An item of a batch stream: one image with its results.
///
/// Its state is in the stream's `ItemTable`.
final class BatchItem: Sendable {
  enum Content: Sendable {
    case whole(Data)
    /// Holds one chunk: sending waits until the image took the one before.
    case upload(AsyncChannel<Data>)
  }

  let id: String
  /// The `preview_key` that it started with; empty for none.
  let key: String
  let renditions: [Rendition]
  let content: Content
  /// Set with the stream's, and when another item takes the item's place.
  let cancellation: Cancellation
  private let stream: Cancellation
  private let handler: UInt64

  static let maxIDByteCount = 256
  private static let maxKeyByteCount = 256

  /// - `stream`: what stops all items of the stream. Call `release` when the item has ended.
  init(id: String, key: String, renditions: [Rendition], content: Content, stream: Cancellation) {
    let cancellation = Cancellation()
    self.id = id
    self.key = key
    self.renditions = renditions
    self.content = content
    self.cancellation = cancellation
    self.stream = stream
    handler = stream.addHandler { cancellation.cancel() }
  }

  var isWhole: Bool { if case .whole = content { true } else { false } }

  /// - Throws: `cancelled` when the item or its stream was.
  func checkCancellation() throws(PipelineError) {
    try stream.check()
    try cancellation.check()
  }

  /// Ends the bytes of an upload: whoever sends or takes them goes on at once.
  func finishChunks() {
    if case .upload(let chunks) = content { chunks.finish() }
  }

  /// Forgets the stream.
  func release() { stream.removeHandler(handler) }

  /// - Throws: `invalidField` for a key that is too long.
  static func check(key: String) throws(PipelineError) {
    guard key.utf8.count > maxKeyByteCount else { return }
    throw PipelineError(
      .invalidField, "preview_key has \(key.utf8.count) bytes; at most \(maxKeyByteCount) are accepted",
      field: "preview_key")
  }
}
