internal import FoundationEssentials
internal import LibC
internal import Synchronization
internal import SystemPackage

/// The images of an output directory that are finished: a file there with a line for each.
///
/// A line is written after the results of its image are in place. Lines are written at once and synced to the disk each
/// second, so that a run which is killed repeats only the images that were in progress, and one whose machine breaks down
/// also those of the last second.
final class BatchJournal: Sendable {
  /// The folder of the files that belong to the runs, not to the results.
  static let folder = ".image-worker"
  private static let name = "journal.jsonl"
  private static let syncInterval = Duration.seconds(1)
  /// More than a record of sixteen results with the longest paths.
  private static let maxLineByteCount = 1 << 20

  enum Status: String, Codable, Sendable {
    case done
    /// Found in a folder, and no image.
    case ignored
  }

  /// One result.
  struct Output: Codable, Sendable, Equatable {
    /// The path below the output directory.
    var path: String
    var bytes: UInt64
    var rendition: String?
    /// The facts about the image, if they were requested.
    var facts: FactsLine?
  }

  /// An image that is finished.
  struct Record: Codable, Sendable {
    /// The results' path below the output directory, without suffix and extension.
    var place: String
    var input: String
    /// Size and time of the input's last change, in nanoseconds.
    var bytes: UInt64
    var modified: Int64
    /// A hash of what was requested.
    var request: String
    var status: Status
    var outputs: [Output]
  }

  /// The purpose for which a journal is opened.
  enum Purpose {
    /// To see what is finished; nothing is written.
    case estimate
    /// To go on, or after forgetting what is finished.
    case run(isFresh: Bool)
  }

  private struct State {
    /// By their places, as paths, which are equal if their bytes are.
    var records: [FilePath: Record] = [:]
    var lastSync = ContinuousClock.now
  }

  private let directory: FilePath
  private let file: FileDescriptor
  private let state = Mutex(State())

  /// Opens the journal of an output directory, and locks it for this process if it runs.
  /// - Throws: `JournalError` if another process has the lock, or `Errno`.
  init(directory: FilePath, for purpose: Purpose) throws {
    self.directory = directory
    let folder = directory.appending(Self.folder)
    guard case .run(let isFresh) = purpose else {
      file = try Self.open(folder.appending(Self.name), .readOnly)
      _ = try read()
      return
    }
    try FileSystem.makeDirectory(folder)
    if FileSystem.isLink(folder) { throw Self.unusable(folder) }
    file = try Self.open(folder.appending(Self.name), .readWrite, [.create, .append])
    if flock(file.rawValue, LOCK_EX | LOCK_NB) != 0 {
      let error = Errno(rawValue: errno)
      try file.close()
      throw error == .wouldBlock ? JournalError(directory: directory) : error
    }
    if isFresh {
      if ftruncate(file.rawValue, 0) != 0 { throw Errno(rawValue: errno) }
    } else if try !read() {
      // The next line begins on its own.
      _ = try file.writeAll("\n".utf8)
    }
  }

  deinit {
    // Also for a process that was forked meanwhile and has inherited the file.
    _ = flock(file.rawValue, LOCK_UN)
    try? file.close()
  }

  /// Opens a file that no link leads to and whose reading ends.
  private static func open(
    _ path: FilePath, _ mode: FileDescriptor.AccessMode, _ options: FileDescriptor.OpenOptions = []
  ) throws -> FileDescriptor {
    let file: FileDescriptor
    do {
      file = try FileDescriptor.open(
        path, mode, options: options.union([.closeOnExec, .noFollow, .nonBlocking]),
        permissions: [.ownerReadWrite, .groupRead, .otherRead])
    } catch Errno.tooManySymbolicLinkLevels { throw unusable(path) }
    if FileSystem.kind(of: file) == .file { return file }
    try file.close()
    throw unusable(path)
  }

  private static func unusable(_ path: FilePath) -> FileError {
    FileError(nil, path.text, "cannot be used", "it is a link or not a regular file; remove it")
  }

  /// Whether an output directory has a journal.
  static func isThere(in directory: FilePath) -> Bool {
    FileSystem.isThere(directory.appending(folder).appending(name))
  }

  /// The record of an image that needs nothing more: its file and the request are the same, and the results are there.
  func record(of image: BatchImage, request: String) -> Record? {
    guard let record = state.withLock({ $0.records[image.place] }), record.request == request,
      FilePath(text: record.input) == FileSystem.canonical(image.path), let input = FileSystem.version(of: image.path),
      input.byteCount == record.bytes, input.modified == record.modified
    else { return nil }
    let isThere = record.outputs.allSatisfy { output in
      FileSystem.version(of: directory.pushing(FilePath(text: output.path)))?.byteCount == output.bytes
    }
    return isThere ? record : nil
  }

  /// The image whose results are where those of another image would be; `nil` if it is the same one, or is gone.
  func owner(ofPlaceOf image: BatchImage) -> FilePath? {
    guard let record = state.withLock({ $0.records[image.place] }), record.status == .done else { return nil }
    let input = FilePath(text: record.input)
    let isOther = FileSystem.Identity(of: input).map { $0 != FileSystem.Identity(of: image.path) } ?? false
    return isOther ? input : nil
  }

  /// Adds an image that is finished.
  /// - `input`: the image's file before it was read.
  func add(
    _ image: BatchImage, _ input: FileSystem.Version, request: String, _ status: Status, outputs: [Output]
  ) throws {
    let record = Record(
      place: image.place.text, input: FileSystem.canonical(image.path).text, bytes: input.byteCount,
      modified: input.modified, request: request, status: status, outputs: outputs)
    let line = try JSONText.line(record) + "\n"
    let isSyncDue = try state.withLock { state in
      // In one call, so that lines of several threads do not mix.
      _ = try file.writeAll(line.utf8)
      guard state.lastSync.duration(to: .now) > Self.syncInterval else { return false }
      state.lastSync = .now
      return true
    }
    if isSyncDue { try sync() }
  }

  /// Waits until all lines are on the disk.
  func sync() throws {
    if fsync(file.rawValue) != 0 { throw Errno(rawValue: errno) }
  }

  /// Reads what earlier runs finished; a line that a killed run did not complete is left out.
  /// - Returns: Whether the last line is complete.
  private func read() throws -> Bool {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try FileSystem.readLines(of: file, maxByteCount: Self.maxLineByteCount) { line in
      guard let record = try? decoder.decode(Record.self, from: Data(line)) else { return }
      state.withLock { $0.records[FilePath(text: record.place)] = record }
    }
  }
}

/// A journal that another process writes.
struct JournalError: Error, CustomStringConvertible {
  let directory: FilePath

  var description: String { "another batch is writing to --out \(directory); wait for it, or name another directory" }
}
