internal import SystemPackage

/// A walk through folders with everything in them.
struct FolderWalk {
  /// A folder that is left out; `nil` for none.
  private let results: FileSystem.Identity?
  /// The number of symbolic links that lead nowhere, or from a folder back to one above it.
  private(set) var skippedLinkCount = 0
  /// The folders below a named one that cannot be read, and why.
  private(set) var unreadable: [(path: FilePath, reason: String)] = []
  /// The canonical paths of the folders that were walked through.
  private var visited: Set<FilePath> = []

  /// - `results`: a folder that is left out; `nil` for none.
  init(passingOver results: FileSystem.Identity?) { self.results = results }

  /// Whether a path leads to the folder that is left out.
  func isResults(_ path: FilePath) -> Bool { results != nil && FileSystem.Identity(of: path) == results }

  /// Calls `body` with every file below a folder, in a fixed order: its path, its folder below the first, and its kind.
  ///
  /// Hidden files are left out. A folder to which several links lead has its files once.
  /// - Throws: `FileError` if the folder itself cannot be read.
  mutating func files(of directory: FilePath, _ body: (FilePath, FilePath, FileSystem.Kind) -> Void) throws {
    visited = []
    try files(of: directory, below: "", in: [], body)
  }

  /// - `parents`: the canonical paths of the folders above, through which links may lead in a circle.
  private mutating func files(
    of directory: FilePath, below folder: FilePath, in parents: [FilePath],
    _ body: (FilePath, FilePath, FileSystem.Kind) -> Void
  ) throws {
    let place = FileSystem.canonical(directory)
    if isResults(directory) { return }
    if parents.contains(place) { skippedLinkCount += 1 }
    guard visited.insert(place).inserted else { return }
    let names: [String]
    do { names = try FileSystem.names(in: directory) } catch {
      if parents.isEmpty { throw FileError(nil, directory.text, "cannot be read", "\(error)") }
      if !unreadable.contains(where: { $0.path == directory }) { unreadable.append((directory, "\(error)")) }
      return
    }
    for name in names where !name.hasPrefix(".") {
      let path = directory.appending(text: name)
      switch FileSystem.kind(of: path) {
      case .directory: try files(of: path, below: folder.appending(text: name), in: parents + [place], body)
      case .missing where FileSystem.isDeadLink(path): skippedLinkCount += 1
      case let kind: body(path, folder, kind)
      }
    }
  }
}
