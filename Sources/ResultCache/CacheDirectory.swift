internal import LibC
internal import SystemPackage

/// The open directory of a disk cache, in which nobody else can write.
///
/// A cached result is served as it is, and its digest has no key: whoever can write a file can forge a result. So the
/// directory and its files must belong to the user of this process, with no write permission for others. Files are
/// opened in the directory as it was checked, whatever happens to its path, and links are not followed.
final class CacheDirectory: Sendable {
  /// A file's size and the time of its last use.
  struct Status {
    var byteCount: Int
    var usedSeconds: Int
    var usedNanoseconds: Int
  }

  private let descriptor: FileDescriptor

  /// Opens a directory, and creates it if it does not exist; its parent must exist.
  /// - Throws: `CacheError.directory` if others own it or may write in it; `Errno`.
  init(_ path: String) throws {
    if mkdir(path, 0o700) != 0, Errno(rawValue: errno) != .fileExists { throw Errno(rawValue: errno) }
    let descriptor = try FileDescriptor.open(path, .readOnly, options: [.directory, .closeOnExec])
    do { try Self.check(descriptor) } catch {
      try? descriptor.close()
      throw error
    }
    self.descriptor = descriptor
  }

  deinit { try? descriptor.close() }

  private static func check(_ directory: FileDescriptor) throws {
    var status = stat()
    guard fstat(directory.rawValue, &status) == 0 else { throw Errno(rawValue: errno) }
    guard status.st_uid == geteuid() else {
      throw CacheError.directory(
        "belongs to the user \(status.st_uid); it must belong to the user of the worker, \(geteuid())")
    }
    guard status.isClosedToOthers else {
      throw CacheError.directory(
        "may be written by others (mode \(String(status.st_mode & 0o7777, radix: 8))), who could forge results; "
          + "use a directory of the worker's own, or remove the permission: chmod go-w")
    }
  }

  /// The names of all files.
  func names() throws(Errno) -> [String] {
    // The stream closes its descriptor.
    let copy = openat(descriptor.rawValue, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard copy >= 0 else { throw Errno(rawValue: errno) }
    guard let stream = fdopendir(copy) else {
      let error = Errno(rawValue: errno)
      close(copy)
      throw error
    }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) { names.append(PathText.name(of: entry)) }
    return names
  }

  /// Opens a file and returns its status.
  /// - Returns: `nil` if it is not a regular file of this user that nobody else may write.
  func open(_ name: String) throws(Errno) -> (file: FileDescriptor, status: Status)? {
    // Opening a pipe does not wait.
    let file = try openFile(name, O_RDONLY | O_NONBLOCK)
    var status = stat()
    guard fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(),
      status.isClosedToOthers
    else {
      try? file.close()
      return nil
    }
    return (file, Status(status))
  }

  /// Creates a file that did not exist, for its owner alone.
  func create(_ name: String) throws(Errno) -> FileDescriptor { try openFile(name, O_WRONLY | O_CREAT | O_EXCL) }

  /// Opens or creates a file that processes lock.
  func openLock(_ name: String) throws(Errno) -> FileDescriptor { try openFile(name, O_RDWR | O_CREAT | O_NONBLOCK) }

  private func openFile(_ name: String, _ flags: Int32) throws(Errno) -> FileDescriptor {
    let file = openat(descriptor.rawValue, name, flags | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw Errno(rawValue: errno) }
    return FileDescriptor(rawValue: file)
  }

  func rename(_ name: String, to other: String) throws(Errno) {
    if renameat(descriptor.rawValue, name, descriptor.rawValue, other) != 0 { throw Errno(rawValue: errno) }
  }

  func remove(_ name: String) { _ = unlinkat(descriptor.rawValue, name, 0) }
}

extension CacheDirectory {
  /// Sets the time of a file's last use to the current time.
  static func touch(_ file: FileDescriptor) { _ = futimens(file.rawValue, nil) }

  /// Locks a file for this process until it is closed.
  /// - Returns: false if another process has locked it.
  static func lock(_ file: FileDescriptor) -> Bool { flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 }

  /// Releases the lock, also for processes that have inherited the file.
  static func unlock(_ file: FileDescriptor) { _ = flock(file.rawValue, LOCK_UN) }
}

extension stat {
  /// Whether neither the group nor others may write.
  fileprivate var isClosedToOthers: Bool { st_mode & (S_IWGRP | S_IWOTH) == 0 }
}

extension CacheDirectory.Status {
  fileprivate init(_ status: stat) {
    byteCount = Int(status.st_size)
    #if canImport(Darwin)
      usedSeconds = status.st_mtimespec.tv_sec
      usedNanoseconds = status.st_mtimespec.tv_nsec
    #else
      usedSeconds = status.st_mtim.tv_sec
      usedNanoseconds = status.st_mtim.tv_nsec
    #endif
  }
}
