internal import Synchronization
internal import SystemPackage

/// Where the results of a command go: none in place of a picture that was given, no two in one place.
final class Destinations: Sendable {
  /// As they were given, by the one path of each.
  private let pictures: [FilePath: FilePath]
  /// The pictures that results come from.
  private let sources = Mutex<[FilePath: FilePath]>([:])

  /// - `pictures`: all that the command was given.
  init(pictures: some Sequence<FilePath>) {
    self.pictures = Dictionary(pictures.map { (FileSystem.canonical($0), $0) }) { first, _ in first }
  }

  /// Sets a path in the output directory aside for a picture's result, before anything is written there.
  /// - Throws: `DestinationError` when the path is another result's, or that of a picture.
  func claim(_ destination: FilePath, for picture: FilePath) throws(DestinationError) {
    let other = sources.withLock { sources in
      let other = sources[destination]
      if other == nil { sources[destination] = picture }
      return other
    }
    if let other { throw DestinationError(description: "\(destination) is already the result of \(other)") }
    let place = FileSystem.canonical(destination)
    guard let replaced = pictures[place] else { return }
    let name = place == FileSystem.canonical(picture) ? "it" : "\(replaced)"
    throw DestinationError(description: "its result would replace \(name)")
  }
}

/// A picture that is not begun.
struct DestinationError: Error, CustomStringConvertible {
  var description: String
}
