internal import Logging
internal import Synchronization
internal import SystemPackage

/// A store of results as files in one directory, one file per result, which later processes can use.
///
/// A file is either complete or absent, and nobody else can have written it (`CacheDirectory`). Only one process can use
/// the directory at a time. If a file cannot be written, for example because the disk is full, the store turns itself off.
final class DiskStore: Sendable {
  private struct State {
    /// The size of each file in bytes, by key.
    var files = RecentlyUsed<Int>()
    var byteCount = 0
    var isOff = false

    mutating func takeOldest() -> CacheKey? {
      guard let oldest = files.removeOldest() else { return nil }
      byteCount -= oldest.value
      return oldest.key
    }
  }

  private static let suffix = ".result"
  private static let partSuffix = ".part"

  private let path: String
  private let directory: CacheDirectory
  private let limit: Int
  private let logger: Logger
  private let state = Mutex(State())
  /// Serializes the writing and removal of files.
  private let writing = Mutex(())
  /// The open lock file; the lock lasts as long as it is open.
  private let lockFile: FileDescriptor

  /// Opens a store, adopts the files in its directory, and removes partial files of a process that was killed while it
  /// wrote.
  /// - Throws: `CacheError` if the directory cannot be created or read, or others may write in it.
  init(directory path: String, limit: Int, logger: Logger) throws(CacheError) {
    self.path = path
    self.limit = limit
    self.logger = logger
    do {
      directory = try CacheDirectory(path)
      lockFile = try directory.openLock(".lock")
    } catch { throw CacheError.directory("\(path): \(error)") }
    guard CacheDirectory.lock(lockFile) else {
      state.withLock { $0.isOff = true }
      logger.warning(
        "the disk cache is locked by another process; continuing without it", metadata: ["directory": "\(path)"])
      return
    }
    do { try takeOver() } catch { throw CacheError.directory("\(path): \(error)") }
  }

  deinit {
    // A process that is being forked may still have the file open for a moment.
    CacheDirectory.unlock(lockFile)
    try? lockFile.close()
  }

  /// The total size of all files in bytes.
  var byteCount: Int { state.withLock { $0.byteCount } }
  var isOff: Bool { state.withLock { $0.isOff } }

  private func takeOver() throws(Errno) {
    var found: [(key: CacheKey, status: CacheDirectory.Status)] = []
    for name in try directory.names() {
      if name.hasPrefix("."), name.hasSuffix(Self.partSuffix) { directory.remove(name) }
      guard name.hasSuffix(Self.suffix), let key = CacheKey(hexadecimal: name.dropLast(Self.suffix.count)) else {
        continue
      }
      let opened: (file: FileDescriptor, status: CacheDirectory.Status)?
      do { opened = try directory.open(name) } catch {
        if error.isOfProcess { continue }
        opened = nil
      }
      guard let (file, status) = opened else {
        logger.warning(
          "removed a file from the disk cache that is not a result of this user", metadata: ["file": "\(path)/\(name)"])
        directory.remove(name)
        continue
      }
      try? file.close()
      // Sizes are added.
      guard status.byteCount <= limit else {
        directory.remove(name)
        continue
      }
      found.append((key, status))
    }
    found.sort {
      ($0.status.usedSeconds, $0.status.usedNanoseconds) < ($1.status.usedSeconds, $1.status.usedNanoseconds)
    }
    state.withLock { state in
      for (key, status) in found {
        _ = state.files.insert(status.byteCount, for: key)
        state.byteCount += status.byteCount
      }
    }
    writing.withLock { _ in makeRoom(for: 0) }
  }

  /// Marks the file of a result as recently used, because the result was used from memory.
  func noteUse(_ key: CacheKey) { state.withLock { _ = $0.files.use(key) } }

  /// Reads a result and blocks meanwhile.
  ///
  /// It removes a file whose content is not what was written.
  /// - `reserve`: called before memory is allocated; the reservation remains if a result is returned.
  /// - `release`: called to return the reservation if reading fails.
  func read(_ key: CacheKey, reserve: (Int) -> Bool, release: (Int) -> Void) -> CachedResult? {
    guard state.withLock({ !$0.isOff && $0.files.use(key) != nil }) else { return nil }
    do {
      guard let (file, status) = try directory.open(name(of: key)) else { throw DiskProblem.foreign }
      return try file.closeAfter {
        let head = try file.readExactly(min(status.byteCount, DiskEntry.headerByteCount))
        guard var header = DiskEntry.readHeader(head, key: key, fileByteCount: status.byteCount) else {
          throw DiskProblem.corrupt
        }
        let cost = header.cost
        guard reserve(cost) else { return nil }
        do {
          let result = try header.readResult(file)
          CacheDirectory.touch(file)
          return result
        } catch {
          release(cost)
          throw error
        }
      }
    } catch let error as Errno where error.isOfProcess || error == .noSuchFileOrDirectory {
      return nil  // the file may be as it should, or was just evicted
    } catch {
      logger.warning(
        "removed an unreadable file from the disk cache",
        metadata: ["file": "\(path)/\(name(of: key))", "error": "\(error)"])
      writing.withLock { _ in remove(key) }
      return nil
    }
  }

  /// Writes a result, evicting the least recently used files if needed, and blocks meanwhile.
  func write(_ result: CachedResult, for key: CacheKey) {
    let byteCount = DiskEntry.byteCount(result)
    guard byteCount <= limit else { return }
    writing.withLock { _ in
      guard !isOff else { return }
      remove(key)
      makeRoom(for: byteCount)
      let part = ".\(UInt64.random(in: .min ... .max))\(Self.partSuffix)"
      do {
        let file = try directory.create(part)
        try file.closeAfter {
          _ = try file.writeAll(DiskEntry.header(of: result, key: key))
          _ = try file.writeAll(result.metadata)
          for chunk in result.chunks { _ = try file.writeAll(chunk) }
        }
        try directory.rename(part, to: name(of: key))
        state.withLock { state in
          _ = state.files.insert(byteCount, for: key)
          state.byteCount += byteCount
        }
      } catch let error as Errno where error.isOfProcess {
        directory.remove(part)
      } catch {
        directory.remove(part)
        turnOff(error)
      }
    }
  }

  /// Removes a result and blocks meanwhile.
  func discard(_ key: CacheKey) { writing.withLock { _ in remove(key) } }

  /// Stops all reading and writing; the files remain for a later process.
  private func turnOff(_ error: any Error) {
    state.withLock { $0.isOff = true }
    logger.warning(
      "a disk cache file cannot be written; continuing without the disk cache",
      metadata: ["directory": "\(path)", "error": "\(error)"])
  }

  // Call this with `writing` locked.
  private func makeRoom(for byteCount: Int) {
    while let key = state.withLock({ $0.byteCount + byteCount > limit ? $0.takeOldest() : nil }) {
      directory.remove(name(of: key))
    }
  }

  // Call this with `writing` locked.
  private func remove(_ key: CacheKey) {
    let removed = state.withLock { state in
      let size = state.files.remove(key)
      state.byteCount -= size ?? 0
      return size != nil
    }
    if removed { directory.remove(name(of: key)) }
  }

  private func name(of key: CacheKey) -> String { key.hexadecimal + Self.suffix }
}

/// A problem with a file's contents.
private enum DiskProblem: Error, CustomStringConvertible {
  case corrupt, truncated, foreign

  var description: String {
    switch self {
    case .corrupt: "its content does not match its checksum"
    case .truncated: "it is truncated"
    case .foreign: "it is not a regular file of this user, or others may write it"
    }
  }
}

extension DiskEntry.Header {
  /// The sizes of the portions of the body.
  private var chunkByteCounts: [Int] {
    stride(from: 0, to: bodyByteCount, by: DiskEntry.chunkByteCount).map {
      min(DiskEntry.chunkByteCount, bodyByteCount - $0)
    }
  }

  /// The memory that the result will use, in bytes.
  fileprivate var cost: Int {
    metadataByteCount + bodyByteCount + (1 + chunkByteCounts.count) * CachedResult.blockOverhead
  }

  /// Reads the metadata and the body.
  /// - Throws: `DiskProblem`, `Errno`.
  fileprivate mutating func readResult(_ file: FileDescriptor) throws -> CachedResult {
    let metadata = try file.readExactly(metadataByteCount)
    update(metadata)
    var chunks: [[UInt8]] = []
    for byteCount in chunkByteCounts {
      let chunk = try file.readExactly(byteCount)
      update(chunk)
      chunks.append(chunk)
    }
    guard isIntact else { throw DiskProblem.corrupt }
    return CachedResult(metadata: metadata, chunks: chunks)
  }
}

extension Errno {
  /// Whether the process or the system lacks something for now, which says nothing about a file.
  fileprivate var isOfProcess: Bool {
    [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .interrupted].contains(self)
  }
}

extension FileDescriptor {
  fileprivate func readExactly(_ byteCount: Int) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      while count < byteCount {
        let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[count..<byteCount])
        let read = try self.read(into: rest)
        if read == 0 { throw DiskProblem.truncated }
        count += read
      }
    }
  }
}
