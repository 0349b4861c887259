internal import FoundationEssentials
internal import Synchronization
internal import SystemPackage

/// An image that is uploaded once or several times.
final class Upload: Sendable {
  /// An image of at most this size is sent in one message.
  static let wholeByteCount = 1 << 20
  /// The size of the parts of a larger one.
  static let chunkByteCount = 256 << 10

  private let source: ImageSource
  private let isBegun = Mutex(false)

  init(_ source: ImageSource) { self.source = source }

  /// Whether the image can be read from its beginning.
  var canStart: Bool { isReplayable || !isBegun.withLock { $0 } }

  /// Whether the image can be sent to two workers at the same time.
  var isReplayable: Bool {
    switch source.kind {
    case .bytes, .file: true
    case .stream: false
    }
  }

  /// Starts to read the image.
  /// - Throws: `SourceError`.
  func open() throws(SourceError) -> Reader {
    isBegun.withLock { $0 = true }
    switch source.kind {
    case .bytes(let bytes):
      var rest: Data? = bytes
      return Reader {
        defer { rest = nil }
        return rest
      }
    case .file(let path):
      do { return try Reader(file: path) } catch { throw SourceError(error: error) }
    case .stream(let open): return open()
    }
  }
}

/// An error of reading an image, which travels through code that handles errors of the connection.
struct SourceError: Error {
  let error: any Error
}

/// Reads one image from its beginning to its end; used by one task.
final class Reader {
  private let next: () async throws -> Data?
  private let file: FileDescriptor?
  private var rest = Data()
  private var isAtEnd = false

  /// - `next`: returns the next bytes, `nil` at the end.
  init(next: @escaping () async throws -> Data?) {
    self.next = next
    file = nil
  }

  init(file path: FilePath) throws {
    let file = try FileDescriptor.open(path, .readOnly)
    self.file = file
    next = {
      let part = try await BlockingWork.run {
        try Data(
          [UInt8](unsafeUninitializedCapacity: Upload.chunkByteCount) { buffer, count in
            count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
          })
      }
      return part.isEmpty ? nil : part
    }
  }

  deinit { try? file?.close() }

  /// The next bytes, at most `limit`; none at the end.
  /// - Throws: `SourceError`.
  func read(_ limit: Int) async throws(SourceError) -> Data {
    while rest.isEmpty, !isAtEnd {
      do {
        if let part = try await next() { rest = part } else { isAtEnd = true }
      } catch { throw SourceError(error: error) }
    }
    let part = rest.prefix(limit)
    rest = rest.dropFirst(part.count)
    return part
  }

  /// The next `limit` bytes, or fewer at the end.
  /// - Throws: `SourceError`.
  func readExactly(_ limit: Int) async throws(SourceError) -> Data {
    var data = Data()
    while data.count < limit {
      let part = try await read(limit - data.count)
      if part.isEmpty { break }
      data += part
    }
    return data
  }
}
