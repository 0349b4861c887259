/// How far an item of a batch stream is.
enum ItemState: Sendable, Hashable {
  /// It has no end yet.
  case active(Progress)
  /// Its one end was sent, or is on its way; its work is done or stops.
  case ending(Progress)

  enum Progress: Sendable, Hashable {
    /// Its bytes still arrive.
    case uploading(UploadMemory)
    /// All its bytes are here.
    case working
    /// The item with this id took its place; its work stops.
    case replaced(by: String)
  }

  /// The memory of an upload whose bytes still arrive.
  enum UploadMemory: Sendable, Hashable {
    case none, waiting, reserved
  }

  var progress: Progress {
    switch self {
    case .active(let progress), .ending(let progress): progress
    }
  }

  /// Whether its bytes still arrive and are of use.
  var isUploading: Bool { if case .active(.uploading) = self { true } else { false } }

  /// Whether its bytes still arrive, though its end may be on its way.
  var isOpen: Bool { if case .uploading = progress { true } else { false } }

  /// Whether another item took its place.
  var isReplaced: Bool { if case .replaced = progress { true } else { false } }

  /// Whether it is an upload that has memory, or waits for it, while its bytes still arrive.
  var needsStream: Bool {
    switch self {
    case .active(.uploading(.waiting)), .active(.uploading(.reserved)): true
    default: false
    }
  }

  /// Its last byte is here.
  /// - Returns: whether that is news.
  mutating func complete() -> Bool {
    guard isUploading else { return false }
    self = .active(.working)
    return true
  }

  /// Another item takes its place.
  mutating func replace(by id: String) {
    guard !isReplaced else { return }
    switch self {
    case .active: self = .active(.replaced(by: id))
    case .ending: self = .ending(.replaced(by: id))
    }
  }

  /// Claims the one end.
  /// - Returns: whether the caller is the one who sends it.
  mutating func claimEnd() -> Bool {
    guard case .active(let progress) = self else { return false }
    self = .ending(progress)
    return true
  }

  /// Notes the memory of an upload whose bytes still arrive.
  mutating func set(_ memory: UploadMemory) {
    if isUploading { self = .active(.uploading(memory)) }
  }
}
