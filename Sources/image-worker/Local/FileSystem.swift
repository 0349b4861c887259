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

  /// What a path leads to, links followed.
  enum Kind: Sendable {
    case file, directory
    /// A pipe, a socket or a device, whose reading may never end.
    case other
    case missing
  }

  static func kind(of path: FilePath) -> Kind {
    var status = stat()
    guard path.withPlatformString({ stat($0, &status) }) == 0 else { return .missing }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return .file
    case S_IFDIR: return .directory
    default: return .other
    }
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
