internal import FoundationEssentials

/// One part of a batch stream's input.
struct BatchPart: Sendable {
  enum Content: Sendable {
    case start(BatchStart)
    case chunk(Data)
    case end
  }

  let itemID: String
  /// `nil` for a part that says nothing.
  let content: Content?
}

/// The beginning of an item.
struct BatchStart: Sendable {
  /// The whole image; empty where it follows in chunks.
  let image: Data
  /// Empty for none.
  let previewKey: String
  /// The results that are asked for, or why they can't be.
  let renditions: Result<[Rendition], any Error>
}
