internal import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// The few file operations of the local commands.
enum FileSystem {
  /// Makes a directory unless it is there.
  static func makeDirectory(_ path: FilePath) throws {
    guard path.withPlatformString({ mkdir($0, 0o777) }) != 0 else { return }
    let error = Errno(rawValue: errno)
    if error != .fileExists { throw error }
  }

  /// Whether something is there, a link that leads nowhere apart.
  static func isThere(_ path: FilePath) -> Bool { path.withPlatformString { access($0, F_OK) } == 0 }

  /// Whether a directory is there, or a link to one.
  static func isDirectory(_ path: FilePath) -> Bool {
    var status = stat()
    return path.withPlatformString { stat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  static func isLink(_ path: FilePath) -> Bool {
    var status = stat()
    return path.withPlatformString { lstat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFLNK
  }

  /// The one path of what is there; of what is not, the path as it was given.
  static func canonical(_ path: FilePath) -> FilePath {
    path.withPlatformString { given in
      guard let resolved = realpath(given, nil) else { return path }
      defer { free(resolved) }
      return FilePath(platformString: resolved)
    }
  }

  /// Writes a file that is there whole or not at all.
  /// - `isDurable`: a file that is there is whole even after the system broke down.
  static func replacing<Result>(
    _ path: FilePath, isDurable: Bool = false, _ body: (FileDescriptor) throws -> Result
  ) throws -> Result {
    var temporary = path
    temporary.removeLastComponent()
    temporary.append(".\(path.lastComponent?.string ?? "").\(getpid()).part")
    let file = try FileDescriptor.open(
      temporary, .writeOnly, options: [.create, .truncate], permissions: [.ownerReadWrite, .groupRead, .otherRead])
    do {
      let result = try file.closeAfter {
        let result = try body(file)
        if isDurable, fsync(file.rawValue) != 0 { throw Errno(rawValue: errno) }
        return result
      }
      try temporary.withPlatformString { from in
        try path.withPlatformString { to in
          if rename(from, to) != 0 { throw Errno(rawValue: errno) }
        }
      }
      return result
    } catch {
      _ = temporary.withPlatformString { unlink($0) }
      throw error
    }
  }

  /// Reads a small file whole.
  /// - Throws: `Errno`, `fileTooLarge` for one of more than `limit` bytes.
  static func read(_ path: FilePath, limit: Int) throws -> [UInt8] {
    let file = try FileDescriptor.open(path, .readOnly)
    return try file.closeAfter {
      var bytes: [UInt8] = []
      while true {
        let part = try [UInt8](unsafeUninitializedCapacity: 64 * 1024) { buffer, count in
          count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
        }
        if part.isEmpty { return bytes }
        bytes += part
        if bytes.count > limit { throw Errno.fileTooLarge }
      }
    }
  }

  static func printError(_ message: String) {
    _ = try? FileDescriptor.standardError.writeAll((message + "\n").utf8)
  }
}
