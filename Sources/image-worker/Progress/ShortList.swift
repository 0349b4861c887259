/// The first entries of a list, and the number of the others.
struct ShortList: Sendable {
  /// What the entries have in common.
  let title: String
  let maxEntryCount: Int
  private var entries: [String] = []
  private var count = 0

  init(title: String, maxEntryCount: Int) {
    self.title = title
    self.maxEntryCount = maxEntryCount
  }

  mutating func add(_ entry: String) {
    count += 1
    if count <= maxEntryCount { entries.append(entry) }
  }

  /// The title and the indented entries, wrapped at a width, without a line end behind the last; `nil` for an empty
  /// list.
  func text(columnCount: Int) -> String? {
    if count == 0 { return nil }
    let lines = entries.flatMap { ReadableText.wrapped($0, columnCount: columnCount, indent: 2) }
    let rest = count > entries.count ? ["  and \(count - entries.count) more; --json lists all"] : []
    return (["\(count) \(title):"] + lines + rest).joined(separator: "\n")
  }
}
