internal import Dispatch
internal import LibC
internal import Synchronization
internal import SystemPackage

/// A file that is there whole or not at all: its bytes go to a hidden file next to it until it is complete.
final class PartialFile: Sendable {
  let path: FilePath
  private let temporary: FilePath
  private let file: FileDescriptor
  private let isOpen = Mutex(true)

  /// The hidden files that are not complete.
  private static let unfinished = Mutex<Set<FilePath>>([])

  /// - `path`: a file there is replaced when this one is complete.
  /// - `number`: a part of the hidden file's name, which nobody can foresee.
  init(_ path: FilePath, number: UInt64 = .random(in: 0 ... .max)) throws {
    self.path = path
    // A name of its own, as the file's may be as long as names can be.
    temporary = path.removingLastComponent().appending(
      ".image-worker.\(getpid()).\(String(number, radix: 16)).part")
    do { file = try Self.created(temporary) } catch {
      throw FileError(nil, path.text, "cannot be written", "\(error)")
    }
    _ = Self.unfinished.withLock { [temporary] in $0.insert(temporary) }
  }

  /// Creates a file that is locked for as long as it is open.
  private static func created(_ path: FilePath) throws -> FileDescriptor {
    while true {
      let file = try FileDescriptor.open(
        path, .writeOnly, options: [.create, .exclusiveCreate, .noFollow, .closeOnExec],
        permissions: [.ownerReadWrite, .groupRead, .otherRead])
      // Another process may have taken the file for a leftover before it was locked.
      var status = stat()
      if flock(file.rawValue, LOCK_EX) != 0 || fstat(file.rawValue, &status) != 0 || status.st_nlink > 0 { return file }
      try file.close()
    }
  }

  /// Lets signals that end the process remove what is not complete before they do.
  ///
  /// The threads of Swift may all be at work, or wait for standard input.
  static func removeAtSignals() -> [any DispatchSourceSignal] {
    [SIGINT, SIGTERM, SIGHUP].compactMap { number in
      // One that is ignored already, as by nohup, stays so.
      let ignored = unsafeBitCast(SIG_IGN, to: Int.self)
      guard unsafeBitCast(signal(number, SIG_IGN), to: Int.self) != ignored else { return nil }
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        unfinished.withLock { paths in
          for path in paths { _ = path.withPlatformString { unlink($0) } }
          signal(number, SIG_DFL)
          kill(getpid(), number)
        }
      }
      source.resume()
      return source
    }
  }

  /// Removes the files of processes that were killed before theirs were complete: those that nobody has locked.
  ///
  /// Processes of other containers, and of other machines, may write to the same directory.
  static func removeLeftovers(in directory: FilePath) {
    for name in (try? FileSystem.names(in: directory)) ?? []
    where name.hasPrefix(".image-worker.") && name.hasSuffix(".part") {
      let path = directory.appending(text: name)
      guard
        let file = try? FileDescriptor.open(path, .writeOnly, options: [.noFollow, .nonBlocking, .closeOnExec])
      else { continue }
      if flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 { _ = path.withPlatformString { unlink($0) } }
      try? file.close()
    }
  }

  func write(_ bytes: RawSpan) throws {
    do { try file.writeAll(bytes) } catch { throw failure(error) }
  }

  /// Puts the file in its place.
  /// - `isDurable`: a file that is there is whole even after the system broke down.
  /// - `place`: another path in the same directory; `nil` for `path`.
  func complete(isDurable: Bool, at place: FilePath? = nil) throws {
    if isDurable, fsync(file.rawValue) != 0 { throw failure(Errno(rawValue: errno)) }
    // Closing a file can fail, too; the lock lasts until the file is in its place.
    let lock = try? file.duplicate()
    defer { try? lock?.close() }
    do { try close() } catch { throw failure(error) }
    try temporary.withPlatformString { from in
      try (place ?? path).withPlatformString { to in
        if rename(from, to) != 0 { throw failure(Errno(rawValue: errno)) }
      }
    }
    _ = Self.unfinished.withLock { $0.remove(temporary) }
  }

  private func failure(_ error: any Error) -> FileError {
    FileError(nil, path.text, "cannot be written", "\(error)")
  }

  private func close() throws {
    guard
      isOpen.withLock({ isOpen in
        defer { isOpen = false }; return isOpen
      })
    else { return }
    try file.close()
  }

  /// Nothing is left of a file that was not completed.
  deinit {
    try? close()
    _ = temporary.withPlatformString { unlink($0) }
    _ = Self.unfinished.withLock { $0.remove(temporary) }
  }
}
