internal import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// The file operations of the cache that swift-system does not have.
enum Files {
  /// A file's size, and when it was last used.
  struct Status {
    var byteCount: Int
    var usedSeconds: Int
    var usedNanoseconds: Int
  }

  /// Makes a directory unless it is there; those above it must be.
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

  /// - Returns: `nil` for what is no regular file.
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

  /// Sets the time of the last use to now.
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
  /// - Returns: false when another process has it.
  static func lock(_ file: FileDescriptor) -> Bool { flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 }
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
