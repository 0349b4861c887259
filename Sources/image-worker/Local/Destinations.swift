internal import ArgumentParser
internal import Synchronization
internal import SystemPackage

/// Where the results of a command go: none in place of an image that was given, no two in one place.
final class Destinations: Sendable {
  /// As they were given.
  private let images: [FileSystem.Identity: FilePath]
  /// The owner of each output file: the result of an image, or an option.
  private let owners = Mutex<[FilePath: String]>([:])

  /// - `images`: all that the command was given.
  init(images: some Sequence<FilePath>) {
    self.images = Dictionary(images.compactMap { path in FileSystem.Identity(of: path).map { ($0, path) } }) {
      first, _ in
      first
    }
  }

  /// Sets a path in the output directory aside for an image's result, before anything is written there.
  /// - Throws: `DestinationError` when the path is another result's, or that of an image.
  func claim(_ destination: FilePath, for image: FilePath) throws(DestinationError) {
    let other = owners.withLock { owners in
      let other = owners[destination]
      if other == nil { owners[destination] = "the result of \(image)" }
      return other
    }
    if let other { throw DestinationError(description: "\(destination) is already \(other)") }
    guard let place = FileSystem.Identity(of: destination), let replaced = images[place] else { return }
    let name = place == FileSystem.Identity(of: image) ? "it" : "\(replaced)"
    throw DestinationError(description: "its result would replace \(name)")
  }

  /// Sets the file of an option aside, before it is written.
  /// - Throws: `ValidationError` when it is an image that was given.
  func claim(_ file: FilePath, ofOption option: String) throws(ValidationError) {
    if let place = FileSystem.Identity(of: file), images[place] != nil {
      throw ValidationError("\(option) is \(file.text), which is one of the images; name another file.")
    }
    owners.withLock { $0[file] = "the file of \(option)" }
  }
}

/// An image that is not begun.
struct DestinationError: Error, CustomStringConvertible {
  var description: String
}
