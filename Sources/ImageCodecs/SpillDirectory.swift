internal import CCodecs

/// A directory for unnamed temporary files that store data too large for memory.
///
/// Such a file disappears with the process, however it ends. The directory stays open as long as this object lives.
package final class SpillDirectory: Sendable {
  /// The system directory for large temporary files, `/var/tmp`; `nil` if no file can be created there.
  package static let system = SpillDirectory(path: "/var/tmp")

  /// The path of the directory.
  package let path: String
  let descriptor: Int32

  /// Opens the directory; fails if no file can be created in it.
  package init?(path: String) {
    let descriptor = ccodecs_spill_open(path)
    guard descriptor >= 0 else { return nil }
    self.path = path
    self.descriptor = descriptor
  }

  deinit { ccodecs_spill_close(descriptor) }
}

extension SpillDirectory: Hashable {
  /// Returns whether both are the same object; two objects for one path differ.
  package static func == (a: SpillDirectory, b: SpillDirectory) -> Bool { a === b }
  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
