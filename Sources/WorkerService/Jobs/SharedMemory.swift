internal import FoundationEssentials
internal import ImagePipeline
internal import LibC
internal import Synchronization
internal import SystemPackage

/// A part of a client's shared memory, into which a result is written instead of being sent.
///
/// The client may remove, shorten or overwrite its segment at any time. So it is written like a file and never mapped: what
/// the client does to it ends its own result with an error at most.
final class SharedMemory: Sendable {
  private struct State {
    /// The open segment; `nil` before the first bytes.
    var file: FileDescriptor?
    var byteCount = 0
    /// The error of the first bytes that were not written.
    var failure: PipelineError?
  }

  private let name: String
  private let range: Range<Int64>
  private let token: [UInt8]
  private let state = Mutex(State())

  /// The beginning of the names of segments, so that no other program's segment can be named.
  static let prefix = "image-worker."
  /// The number of characters that follow it.
  static let nameCounts = 1...200
  /// The sizes that a token can have.
  static let tokenByteCounts = 16...64

  /// - Parameters:
  ///   - name: A name for which `isValid` holds.
  ///   - range: The place of the result in the segment, behind the token.
  ///   - token: The bytes with which the segment begins.
  init(name: String, range: Range<Int64>, token: [UInt8]) {
    self.name = name
    self.range = range
    self.token = token
  }

  deinit {
    state.withLock { try? $0.file?.close() }
  }

  /// Returns whether a segment can have a name.
  static func isValid(name: String) -> Bool {
    let rest = name.utf8.dropFirst(prefix.utf8.count)
    return name.hasPrefix(prefix) && nameCounts.contains(rest.count)
      && rest.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
          true
        default: false
        }
      }
  }

  /// The error that `write` has thrown, after which nothing more is written.
  var failure: PipelineError? { state.withLock { $0.failure } }

  /// Writes the next bytes of the result.
  /// - Throws: `invalidField` if the segment is not one that may be written, `limitExceeded` if the result is too large; each
  ///   once.
  func write(_ bytes: Data) throws(PipelineError) {
    try state.withLock { state throws(PipelineError) in
      guard state.failure == nil else { return }
      do throws(PipelineError) { try append(bytes, to: &state) } catch {
        state.failure = error
        throw error
      }
    }
  }

  private func append(_ bytes: Data, to state: inout State) throws(PipelineError) {
    let file: FileDescriptor
    if let open = state.file {
      file = open
    } else {
      file = try open()
      state.file = file
    }
    let end = state.byteCount + bytes.count
    guard end <= range.count else {
      throw PipelineError(
        .limitExceeded, "the result has at least \(end) bytes, more than shared_memory.max_bytes of \(range.count)",
        field: "shared_memory.max_bytes", of: .request,
        limit: .init(name: "shared_memory.max_bytes", limit: UInt64(range.count), value: UInt64(end)))
    }
    try checkSize(try status(of: file))
    do { try file.writeAll(toAbsoluteOffset: range.lowerBound + Int64(state.byteCount), bytes) } catch {
      throw fault("cannot be written", error as? Errno)
    }
    state.byteCount = end
  }

  /// Opens the segment and checks whose it is.
  private func open() throws(PipelineError) -> FileDescriptor {
    #if os(Linux)
      // Opening neither waits for the owner of a pipe nor for that of a lease.
      let descriptor = shm_open("/\(name)", O_RDWR | O_NONBLOCK, 0)
      guard descriptor >= 0 else {
        let error = Errno(rawValue: errno)
        throw error == .noSuchFileOrDirectory ? strange : fault("cannot be opened", error)
      }
      let file = FileDescriptor(rawValue: descriptor)
      do throws(PipelineError) { try check(file) } catch {
        try? file.close()
        throw error
      }
      return file
    #else
      throw fault("cannot be opened: shared memory is supported only on Linux")
    #endif
  }

  private func check(_ file: FileDescriptor) throws(PipelineError) {
    let status = try status(of: file)
    let isOfGroup = status.st_gid == getegid() && status.st_mode & S_IWGRP != 0
    guard status.st_mode & S_IFMT == S_IFREG, status.st_nlink <= 1, status.st_uid == geteuid() || isOfGroup else {
      throw fault("is not a segment of the worker's user, or one that its group may write")
    }
    guard status.st_mode & S_IWOTH == 0 else { throw fault("may be written by all users; remove that permission") }
    var first = [UInt8](repeating: 0, count: token.count)
    let count = pread(file.rawValue, &first, first.count, 0)
    // In a time that does not depend on where they differ.
    let difference = zip(first, token).reduce(0) { $0 | ($1.0 ^ $1.1) }
    guard count == token.count, difference == 0 else { throw strange }
    try checkSize(status)
  }

  private func status(of file: FileDescriptor) throws(PipelineError) -> stat {
    var status = stat()
    guard fstat(file.rawValue, &status) == 0 else { throw fault("cannot be read", Errno(rawValue: errno)) }
    return status
  }

  /// Checks that all of the segment has memory, so that its client, and not this worker, has paid for it.
  private func checkSize(_ status: stat) throws(PipelineError) {
    guard status.st_size >= range.upperBound else {
      throw fault("has \(status.st_size) bytes, and the place of the result ends at \(range.upperBound)")
    }
    guard Int64(status.st_blocks) * 512 >= status.st_size else { throw fault("is not allocated; use posix_fallocate") }
  }

  /// The error for a segment of which the client does not know what is in it, if there is one.
  private var strange: PipelineError { fault("does not exist, or does not begin with shared_memory.token") }

  private func fault(_ text: String, _ error: Errno? = nil) -> PipelineError {
    let text = error.map { "\(text): \($0)" } ?? text
    let isOfHost = [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .noSpace].contains(error)
    return PipelineError(
      isOfHost ? .overloaded : .invalidField, "shared_memory.name is \"\(name)\", which \(text)",
      field: "shared_memory.name", of: .request)
  }
}
