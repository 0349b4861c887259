internal import Synchronization
internal import SystemPackage

/// Where the results of a command go: none in place of an image that was given, no two in one place.
final class Destinations: Sendable {
  /// As they were given, by the one path of each.
  private let images: [FilePath: FilePath]
  /// The images that results come from.
  private let sources = Mutex<[FilePath: FilePath]>([:])

  /// - `images`: all that the command was given.
  init(images: some Sequence<FilePath>) {
    self.images = Dictionary(images.map { (FileSystem.canonical($0), $0) }) { first, _ in first }
  }

  /// Sets a path in the output directory aside for an image's result, before anything is written there.
  /// - Throws: `DestinationError` when the path is another result's, or that of an image.
  func claim(_ destination: FilePath, for image: FilePath) throws(DestinationError) {
    let other = sources.withLock { sources in
      let other = sources[destination]
      if other == nil { sources[destination] = image }
      return other
    }
    if let other { throw DestinationError(description: "\(destination) is already the result of \(other)") }
    let place = FileSystem.canonical(destination)
    guard let replaced = images[place] else { return }
    let name = place == FileSystem.canonical(image) ? "it" : "\(replaced)"
    throw DestinationError(description: "its result would replace \(name)")
  }
}

/// An image that is not begun.
struct DestinationError: Error, CustomStringConvertible {
  var description: String
}
