internal import AsyncAlgorithms
internal import FoundationEssentials
internal import ImagePipeline

/// An item of a batch stream: one image and its results.
///
/// The stream's `ItemTable` contains its state.
final class BatchItem: Sendable {
  enum Content: Sendable {
    case whole(Data)
    /// A channel of at most one chunk: sending waits until the previous chunk was consumed.
    case upload(AsyncChannel<Data>)
  }

  let id: String
  /// The `preview_key` of the item; empty if none was set.
  let key: String
  let renditions: [Rendition]
  let content: Content
  /// Cancelled together with the stream, and when another item replaces this one.
  let cancellation: Cancellation
  private let stream: Cancellation
  private let handler: UInt64

  static let maxIDByteCount = 256
  private static let maxKeyByteCount = 256

  /// Creates an item.
  ///
  /// Call `release` when it has ended.
  ///
  /// - `stream`: the cancellation of all items of the stream.
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

  /// Checks whether the item or its stream was cancelled.
  /// - Throws: `cancelled`.
  func checkCancellation() throws(PipelineError) {
    try stream.check()
    try cancellation.check()
  }

  /// Ends the input of an upload; pending sends and reads return immediately.
  func finishChunks() {
    if case .upload(let chunks) = content { chunks.finish() }
  }

  /// Removes the item's handler from the stream's cancellation.
  func release() { stream.removeHandler(handler) }

  /// Checks the length of a `preview_key`.
  /// - Throws: `invalidField` if it is too long.
  static func check(key: String) throws(PipelineError) {
    guard key.utf8.count > maxKeyByteCount else { return }
    throw PipelineError(
      .invalidField, "preview_key has \(key.utf8.count) bytes; at most \(maxKeyByteCount) are accepted",
      field: "preview_key", of: .request)
  }
}
