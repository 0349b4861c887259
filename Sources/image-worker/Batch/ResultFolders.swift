internal import Synchronization
internal import SystemPackage

/// The folders of a batch's results, made when the first result needs them.
final class ResultFolders: Sendable {
  private let directory: FilePath
  private let prepared = Mutex<Set<FilePath>>([])

  init(directory: FilePath) { self.directory = directory }

  /// Makes a folder, and removes what killed runs left there.
  /// - `folder`: the path below the output directory.
  func prepare(_ folder: FilePath) throws -> FilePath {
    try prepared.withLock { prepared in
      var path = directory
      if prepared.insert(path).inserted { PartialFile.removeLeftovers(in: path) }
      for component in folder.components {
        path.append(component)
        guard !prepared.contains(path) else { continue }
        do { try FileSystem.makeDirectory(path) } catch {
          throw FileError(nil, path.text, "cannot be created", "\(error)")
        }
        PartialFile.removeLeftovers(in: path)
        prepared.insert(path)
      }
      return path
    }
  }
}
