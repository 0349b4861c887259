internal import FoundationEssentials

/// One part of a batch stream's input.
struct BatchPart: Sendable {
  enum Content: Sendable {
    case start(BatchStart)
    case chunk(Data)
    case end
  }

  let itemID: String
  /// The content; `nil` for a part that sets none.
  let content: Content?
}

/// The start of an item.
struct BatchStart: Sendable {
  /// The whole image; empty if it follows in chunks.
  let image: Data
  /// The `preview_key`; empty if none was set.
  let previewKey: String
  /// The requested results, or the error that makes them impossible.
  let renditions: Result<[Rendition], any Error>
}
