internal import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// File operations that the cache needs and swift-system does not provide.
enum Files {
  /// A file's size and the time of its last use.
  struct Status {
    var byteCount: Int
    var usedSeconds: Int
    var usedNanoseconds: Int
  }

  /// Creates a directory if it does not exist; its parent must exist.
  static func makeDirectory(_ path: FilePath) throws(Errno) {
    guard path.withPlatformString({ mkdir($0, 0o700) }) != 0 else { return }
    let error = Errno(rawValue: errno)
    if error != .fileExists { throw error }
  }

  static func names(in directory: FilePath) throws(Errno) -> [String] {
    guard let stream = directory.withPlatformString({ opendir($0) }) else { throw Errno(rawValue: errno) }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) { name in
          name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        })
    }
    return names
  }

  /// Returns the status of a file.
  /// - Returns: `nil` if it is not a regular file.
  static func status(_ path: FilePath) -> Status? {
    var status = stat()
    guard path.withPlatformString({ lstat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return Status(status)
  }

  static func status(_ file: FileDescriptor) -> Status? {
    var status = stat()
    guard fstat(file.rawValue, &status) == 0 else { return nil }
    return Status(status)
  }

  /// Sets the time of the last use to the current time.
  static func touch(_ file: FileDescriptor) { _ = futimens(file.rawValue, nil) }

  static func rename(_ from: FilePath, to path: FilePath) throws(Errno) {
    let status = from.withPlatformString { from in path.withPlatformString { Self.rename(from, $0) } }
    if status != 0 { throw Errno(rawValue: errno) }
  }

  private static func rename(_ from: UnsafePointer<CChar>, _ to: UnsafePointer<CChar>) -> Int32 {
    #if canImport(Glibc)
      Glibc.rename(from, to)
    #elseif canImport(Musl)
      Musl.rename(from, to)
    #else
      Darwin.rename(from, to)
    #endif
  }

  static func remove(_ path: FilePath) { _ = path.withPlatformString { unlink($0) } }

  /// Locks a file for this process until it is closed.
  /// - Returns: false if another process has locked it.
  static func lock(_ file: FileDescriptor) -> Bool { flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 }

  /// Releases the lock, also for processes that have inherited the file.
  static func unlock(_ file: FileDescriptor) { _ = flock(file.rawValue, LOCK_UN) }
}

extension Files.Status {
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
