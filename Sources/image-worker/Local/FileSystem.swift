internal import LibC
internal import SystemPackage

/// The few file operations of the local commands.
enum FileSystem {
  /// Makes a directory unless it is there.
  static func makeDirectory(_ path: FilePath) throws {
    guard path.withPlatformString({ mkdir($0, 0o777) }) != 0 else { return }
    let error = Errno(rawValue: errno)
    if error != .fileExists { throw error }
  }

  /// Makes the directory that an option names, with all above it, unless it is there.
  /// - Throws: `FileError`.
  static func makeDirectory(_ path: FilePath, option: String) throws(FileError) {
    do { try makeDirectories(path) } catch { throw FileError(option, path.text, "cannot be created", "\(error)") }
  }

  private static func makeDirectories(_ path: FilePath) throws {
    switch kind(of: path) {
    case .directory: return
    case .file, .other: throw Errno.notDirectory
    case .missing:
      let parent = path.removingLastComponent()
      if !parent.isEmpty { try makeDirectories(parent) }
      try makeDirectory(path)
    }
  }

  /// The names in a directory as text of paths, sorted.
  static func names(in directory: FilePath) throws(Errno) -> [String] {
    guard let stream = directory.withPlatformString({ opendir($0) }) else { throw Errno(rawValue: errno) }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else { break }
      names.append(PathText.name(of: entry))
    }
    if errno != 0 { throw Errno(rawValue: errno) }
    return names.filter { $0 != "." && $0 != ".." }.sorted()
  }

  /// Whether something is there, except a link that leads nowhere.
  static func isThere(_ path: FilePath) -> Bool { path.withPlatformString { access($0, F_OK) } == 0 }

  /// Whether a path leads to a regular file.
  static func isFile(_ path: FilePath) -> Bool { kind(of: path) == .file }

  /// The kind of file that a path leads to, links followed.
  enum Kind: Sendable {
    case file, directory
    /// A pipe, a socket or a device, whose reading may never end.
    case other
    case missing
  }

  static func kind(of path: FilePath) -> Kind {
    var status = stat()
    return path.withPlatformString({ stat($0, &status) }) == 0 ? kind(status) : .missing
  }

  static func kind(of file: FileDescriptor) -> Kind {
    var status = stat()
    return fstat(file.rawValue, &status) == 0 ? kind(status) : .missing
  }

  /// The size of an open regular file in bytes; `nil` for anything else.
  static func byteCount(of file: FileDescriptor) -> UInt64? {
    var status = stat()
    guard fstat(file.rawValue, &status) == 0, kind(status) == .file else { return nil }
    return UInt64(status.st_size)
  }

  private static func kind(_ status: stat) -> Kind {
    switch status.st_mode & S_IFMT {
    case S_IFREG: .file
    case S_IFDIR: .directory
    default: .other
    }
  }

  /// The identity of a file or folder: equal for all paths that lead to it, even if its folder is mounted twice, or if they
  /// differ only in case.
  struct Identity: Hashable, Sendable {
    private let device: UInt64
    private let number: UInt64

    /// Fails if nothing is there.
    init?(of path: FilePath) {
      var status = stat()
      guard path.withPlatformString({ stat($0, &status) }) == 0 else { return nil }
      (device, number) = (UInt64(truncatingIfNeeded: status.st_dev), UInt64(truncatingIfNeeded: status.st_ino))
    }
  }

  /// Whether a path is a link that leads nowhere, not one whose target cannot be seen.
  static func isDeadLink(_ path: FilePath) -> Bool {
    guard isLink(path) else { return false }
    var status = stat()
    guard path.withPlatformString({ stat($0, &status) }) != 0 else { return false }
    return [ENOENT, ENOTDIR, ELOOP].contains(errno)
  }

  /// A state of a file, which differs from later ones.
  struct Version: Sendable, Equatable {
    var byteCount: UInt64
    /// The time of the last change, in nanoseconds.
    var modified: Int64
  }

  /// The version of a file, links followed; `nil` if it is not there.
  static func version(of path: FilePath) -> Version? {
    var status = stat()
    guard path.withPlatformString({ stat($0, &status) }) == 0 else { return nil }
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    return Version(
      byteCount: UInt64(status.st_size), modified: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
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

  /// The one path of a file or link in its folder, of which only the folder's links are followed.
  static func canonicalPlace(_ path: FilePath) -> FilePath {
    guard let name = path.lastComponent, name.kind == .regular else { return canonical(path) }
    let folder = path.removingLastComponent()
    return canonical(folder.isEmpty ? "." : folder).appending(name)
  }

  /// Reads a small file whole.
  /// - `mayWait`: whether a pipe is read, too, which may have no writer yet.
  /// - Throws: `Errno`, `fileTooLarge` for one of more than `limit` bytes; `IrregularFile`.
  static func read(_ path: FilePath, limit: Int, mayWait: Bool = true) throws -> [UInt8] {
    let file = try FileDescriptor.open(path, .readOnly, options: mayWait ? [] : .nonBlocking)
    return try file.closeAfter {
      guard mayWait || kind(of: file) == .file else { throw IrregularFile() }
      var bytes: [UInt8] = []
      while true {
        let part = try readPart(of: file, byteCount: 64 * 1024)
        if part.isEmpty { return bytes }
        bytes += part
        if bytes.count > limit { throw Errno.fileTooLarge }
      }
    }
  }

  /// The maximum size of a file that a setting names, in bytes.
  private static let maxSettingByteCount = 1 << 20

  /// Reads the file that a setting names.
  /// - `option`: the setting, as users spell it.
  /// - `isReload`: whether the file was read before; then a pipe is refused, which has nothing more or never ends.
  static func bytes(of path: FilePath, option: String, isReload: Bool = false) throws(SettingsError) -> [UInt8] {
    do { return try read(path, limit: maxSettingByteCount, mayWait: !isReload) } catch {
      throw SettingsError(description: "\(option) \(path) cannot be read: \(error)")
    }
  }

  /// Reads the text file that a setting names, without the byte order mark that editors may begin it with.
  static func text(of path: FilePath, option: String, isReload: Bool = false) throws(SettingsError) -> String {
    let bytes = try bytes(of: path, option: option, isReload: isReload)
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    guard let text = String(validating: bytes.dropFirst(bytes.starts(with: mark) ? mark.count : 0), as: UTF8.self)
    else {
      throw SettingsError(description: "\(option) \(path) is not text in UTF-8")
    }
    return text
  }

  /// Reads at most `byteCount` bytes of a file, none at the end.
  /// - `offset`: where to read, which a pipe refuses; `nil` for the next bytes.
  static func readPart(of file: FileDescriptor, at offset: Int? = nil, byteCount: Int) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      let bytes = UnsafeMutableRawBufferPointer(buffer)
      count = try offset.map { try file.read(fromAbsoluteOffset: Int64($0), into: bytes) } ?? file.read(into: bytes)
    }
  }

  /// Calls `body` with each line of a file that has at most `maxByteCount` bytes; longer ones cost no memory and no more
  /// time than others.
  /// - Returns: Whether the file is empty or ends with a line end; what follows the last one is left out.
  static func readLines(
    of file: FileDescriptor, maxByteCount: Int, _ body: ([UInt8]) throws -> Void
  ) throws -> Bool {
    var (line, isTooLong, isAtEnd): ([UInt8], Bool, Bool) = ([], false, true)
    func add(_ part: ArraySlice<UInt8>) {
      isTooLong = isTooLong || line.count + part.count > maxByteCount
      if isTooLong { line = [] } else { line += part }
    }
    while true {
      let part = try readPart(of: file, byteCount: 1 << 16)
      if part.isEmpty { return isAtEnd }
      var rest = part[...]
      while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        add(rest[..<end])
        if !isTooLong { try body(line) }
        (line, isTooLong) = ([], false)
        rest = rest[(end + 1)...]
      }
      add(rest)
      isAtEnd = rest.isEmpty
    }
  }

  /// Removes a file if it is there.
  static func remove(_ path: FilePath) { _ = path.withPlatformString { unlink($0) } }

  /// Writes a line at once, so that whoever follows the output sees it grow.
  /// - `line`: JSON, or printable text.
  /// - `output`: standard output or standard error.
  /// - Throws: `FileError` if it cannot be written.
  static func printLine(_ line: String, to output: FileDescriptor = .standardOutput) throws(FileError) {
    do { _ = try output.writeAll((line + "\n").utf8) } catch {
      let name = output == .standardOutput ? "standard output" : "standard error"
      throw FileError(nil, name, "cannot be written", "\(error)")
    }
  }

  static func printError(_ message: String) {
    _ = try? FileDescriptor.standardError.writeAll((ReadableText.printable(message) + "\n").utf8)
  }
}

extension FileDescriptor {
  func writeAll(_ bytes: RawSpan) throws { try bytes.withUnsafeBytes { _ = try writeAll($0) } }
}

/// A pipe, a socket, a device or a folder where only a file can be read.
private struct IrregularFile: Error, CustomStringConvertible {
  let description = "not a regular file"
}

/// A file that cannot be used, with the option that names it.
struct FileError: Error, CustomStringConvertible {
  let description: String

  /// - `option`: the option as users spell it; `nil` for an argument or a file that none names.
  /// - `problem`: what failed, as in "cannot be read".
  /// - `reason`: the error of the system, or what is wrong with the contents.
  init(_ option: String?, _ path: String, _ problem: String, _ reason: String) {
    description = (option.map { "\($0) " } ?? "") + "\(path.isEmpty ? "\"\"" : path) \(problem): \(reason)"
  }
}
