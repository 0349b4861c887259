internal import CCodecs

/// A directory for files without a name that hold what does not fit in memory.
///
/// Such a file goes with the process however that ends. The directory stays open as long as this value lives.
package final class SpillDirectory: Sendable {
  /// The directory for temporary files that may be large: `/var/tmp`; `nil` when no file can be made there.
  package static let system = SpillDirectory(path: "/var/tmp")

  /// The path of the directory.
  package let path: String
  let descriptor: Int32

  /// Fails when no file can be made in the directory.
  package init?(path: String) {
    let descriptor = ccodecs_spill_open(path)
    guard descriptor >= 0 else { return nil }
    self.path = path
    self.descriptor = descriptor
  }

  deinit { ccodecs_spill_close(descriptor) }
}

extension SpillDirectory: Hashable {
  package static func == (a: SpillDirectory, b: SpillDirectory) -> Bool { a === b }
  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
