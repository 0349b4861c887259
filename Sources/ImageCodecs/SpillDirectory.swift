internal import CCodecs

/// A directory for unnamed temporary files that store data too large for memory.
///
/// Such a file disappears with the process, however it ends. The directory stays open as long as this object lives.
package final class SpillDirectory: Sendable {
  /// The system directory for large temporary files, `/var/tmp`; `nil` if no file can be created there.
  package static let system = SpillDirectory(path: "/var/tmp")

  let descriptor: Int32
  /// Whether files are requested from another process.
  let isSocket: Bool

  /// Opens the directory; fails if no file can be created in it.
  package init?(path: String) {
    let descriptor = ccodecs_spill_open(path)
    guard descriptor >= 0 else { return nil }
    self.descriptor = descriptor
    isSocket = false
  }

  /// Creates a directory whose files another process creates: in exchange for each size that is sent to `socket`, it
  /// sends the descriptor of a new file.
  ///
  /// The socket is closed with this object.
  package init(requestingFilesFrom socket: Int32) {
    descriptor = socket
    isSocket = true
  }

  deinit { ccodecs_spill_close(descriptor) }

  /// Creates a file without a name, of `byteCount` bytes for which the disk has room.
  /// - Returns: A descriptor for reading and writing, which the caller closes; -1 if no file can be created.
  package func makeFile(byteCount: UInt64) -> Int32 { ccodecs_spill_create_file(descriptor, byteCount) }
}

extension SpillDirectory: Hashable {
  /// Returns whether both are the same object; two objects for one path differ.
  package static func == (a: SpillDirectory, b: SpillDirectory) -> Bool { a === b }
  package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
