/// The state of an item of a batch stream.
enum ItemState: Sendable, Hashable {
  /// The item has not ended.
  case active(Progress)
  /// The item's final report or error was sent or is being sent; its work has finished or is stopping.
  case ending(Progress)

  enum Progress: Sendable, Hashable {
    /// The item's bytes are still arriving.
    case uploading(UploadMemory)
    /// All bytes of the item have arrived.
    case working
    /// The item with this id replaced the item, whose work is stopping.
    case replaced(by: String)
  }

  /// The memory of an upload whose bytes are still arriving.
  enum UploadMemory: Sendable, Hashable {
    case none, waiting, reserved
  }

  var progress: Progress {
    switch self {
    case .active(let progress), .ending(let progress): progress
    }
  }

  /// Whether the item's bytes are still arriving and are needed.
  var isUploading: Bool { if case .active(.uploading) = self { true } else { false } }

  /// Whether the item's bytes are still arriving, even if its end is already being sent.
  var isOpen: Bool { if case .uploading = progress { true } else { false } }

  /// Whether another item replaced this one.
  var isReplaced: Bool { if case .replaced = progress { true } else { false } }

  /// Whether the item is an upload that has or awaits memory while its bytes are still arriving.
  var needsStream: Bool {
    switch self {
    case .active(.uploading(.waiting)), .active(.uploading(.reserved)): true
    default: false
    }
  }

  /// Records that the last byte has arrived.
  /// - Returns: Whether the state has changed.
  mutating func complete() -> Bool {
    guard isUploading else { return false }
    self = .active(.working)
    return true
  }

  /// Records that another item replaces this one.
  mutating func replace(by id: String) {
    guard !isReplaced else { return }
    switch self {
    case .active: self = .active(.replaced(by: id))
    case .ending: self = .ending(.replaced(by: id))
    }
  }

  /// Claims the right to send the item's only end.
  /// - Returns: Whether the caller must send it.
  mutating func claimEnd() -> Bool {
    guard case .active(let progress) = self else { return false }
    self = .ending(progress)
    return true
  }

  /// Records the memory of an upload whose bytes are still arriving.
  mutating func set(_ memory: UploadMemory) {
    if isUploading { self = .active(.uploading(memory)) }
  }
}
