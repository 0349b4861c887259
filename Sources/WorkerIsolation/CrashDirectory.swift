internal import CSandbox
internal import LibC

/// A directory that keeps images whose helpers were lost, for the operator.
package final class CrashDirectory: Sendable {
  /// The maximum number of files; further images are not kept.
  package static let maxFileCount = 100
  /// The maximum size of a file in bytes; what follows of an image is not kept.
  package static let maxFileByteCount = 64 << 20
  /// The beginning of every file's name.
  package static let prefix = "crash-"

  /// The path of the directory.
  package let path: String

  /// Opens a directory; fails if no file can be created in it.
  package init?(path: String) {
    self.path = path
    guard makeFile() != nil else { return nil }
  }

  /// Creates a file without a name for the bytes of one image; returns `nil` if that is not possible.
  package func makeFile() -> CrashFile? {
    let descriptor = csandbox_file_create(path)
    return descriptor < 0 ? nil : CrashFile(descriptor, directory: self)
  }

  /// Whether there is room for another file.
  fileprivate var hasRoom: Bool {
    guard let directory = opendir(path) else { return false }
    defer { closedir(directory) }
    var count = 0
    while let entry = readdir(directory) {
      if PathText.name(of: entry).utf8.starts(with: Self.prefix.utf8) { count += 1 }
    }
    return count < Self.maxFileCount
  }
}

/// The bytes of one image, in a file that disappears unless it is kept.
package final class CrashFile {
  private let descriptor: Int32
  private let directory: CrashDirectory
  /// The number of bytes that the helper has consumed.
  private var position = 0

  fileprivate init(_ descriptor: Int32, directory: CrashDirectory) {
    self.descriptor = descriptor
    self.directory = directory
  }

  deinit { close(descriptor) }

  /// Writes the next bytes of the image behind those that were consumed.
  package func write(_ bytes: RawSpan) {
    let count = min(bytes.byteCount, CrashDirectory.maxFileByteCount - position)
    guard count > 0 else { return }
    bytes.withUnsafeBytes { _ = pwrite(descriptor, $0.baseAddress, count, off_t(position)) }
  }

  /// Records that the helper has consumed bytes; others are written again.
  package func consume(_ byteCount: Int) { position += byteCount }

  /// Gives the file a name that contains the time, if the directory has room.
  package func keep() {
    guard directory.hasRoom else { return }
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    _ = csandbox_file_name(
      descriptor, "\(directory.path)/\(CrashDirectory.prefix)\(now.tv_sec)-\(now.tv_nsec)")
  }
}
