internal import FoundationEssentials
internal import ImagePipeline
internal import ResultCache

/// Supplies the bytes of one image.
///
/// A source belongs to one job.
protocol ImageSource: AnyObject {
  /// Returns the next bytes of the image, and whether they are the last.
  ///
  /// Waits until bytes are available. Must not be called again after the last bytes.
  func next() async throws -> (bytes: Data, isLast: Bool)

  /// Whether every byte of the image has arrived.
  var isComplete: Bool { get }

  /// The bytes of an image that arrived in one message; `nil` for an upload.
  var whole: Data? { get }

  /// The number of bytes that the source itself keeps in memory until the image has ended.
  var bufferedByteCount: Int { get }

  /// Releases memory that others than the image use, because there was no room for bytes of its header.
  /// - Returns: Whether there may be room now.
  func makeRoom(after error: PipelineError) -> Bool
}

extension ImageSource {
  var whole: Data? { nil }
  /// The EXIF orientation behind the image data of a PNG that arrived in one message.
  ///
  /// That of an upload is unknown, however fast it arrives, so that results do not depend on time. The bytes are searched
  /// each time.
  var lateOrientation: Int? { whole.flatMap { ImageReader.lateOrientation(of: $0.bytes) } }
  func makeRoom(after error: PipelineError) -> Bool { false }
}

/// An image that arrived in one message.
final class WholeImage: ImageSource {
  private let bytes: Data
  private let isCharged: Bool

  /// - `isCharged`: whether the listener has charged the bytes to the memory budget.
  init(_ bytes: Data, isCharged: Bool = false) {
    self.bytes = bytes
    self.isCharged = isCharged
  }

  var isComplete: Bool { true }
  var whole: Data? { bytes }
  var bufferedByteCount: Int { isCharged ? 0 : bytes.count }

  func next() async throws -> (bytes: Data, isLast: Bool) { (bytes, true) }
}

/// Charges the bytes of another source to a caller while forwarding them.
final class ChargedSource: ImageSource {
  private let source: any ImageSource
  /// The image to charge; `nil` until it has begun.
  var image: CallerImage?

  init(_ source: any ImageSource) { self.source = source }

  var isComplete: Bool { source.isComplete }
  var whole: Data? { source.whole }
  var bufferedByteCount: Int { source.bufferedByteCount }
  func makeRoom(after error: PipelineError) -> Bool { source.makeRoom(after: error) }

  func next() async throws -> (bytes: Data, isLast: Bool) {
    let (bytes, isLast) = try await source.next()
    image?.use(byteCount: bytes.count)
    return (bytes, isLast)
  }
}

/// Hashes the bytes of another source while forwarding them.
final class HashingSource: ImageSource {
  private let source: any ImageSource
  /// The hash state of the bytes forwarded so far.
  private(set) var hasher = InputHasher()

  init(_ source: any ImageSource) { self.source = source }

  var isComplete: Bool { source.isComplete }
  var whole: Data? { source.whole }
  var bufferedByteCount: Int { source.bufferedByteCount }
  func makeRoom(after error: PipelineError) -> Bool { source.makeRoom(after: error) }

  func next() async throws -> (bytes: Data, isLast: Bool) {
    let (bytes, isLast) = try await source.next()
    bytes.withUnsafeBytes { hasher.update($0) }
    return (bytes, isLast)
  }
}

/// The bytes of a source, divided into windows.
///
/// A job checks for output after each window.
struct SourceWindows {
  /// The default maximum size of a window in bytes; a strip of a large image needs about as many.
  static let byteCount = 128 * 1024

  private let source: any ImageSource
  private let maxByteCount: Int
  private var rest = Data()
  /// Whether no byte follows the current chunk.
  private(set) var isLastChunk = false

  /// - `maxByteCount`: the maximum size of a window.
  init(_ source: any ImageSource, maxByteCount: Int = SourceWindows.byteCount) {
    self.source = source
    self.maxByteCount = maxByteCount
  }

  /// The unread bytes of the current chunk.
  var chunk: Data { rest }
  /// Whether the current chunk is consumed.
  var isEmpty: Bool { rest.isEmpty }
  /// Whether at most one window of the default size remains.
  var isNearEnd: Bool { isLastChunk && rest.count <= Self.byteCount }

  /// The next bytes to process, and whether they are the last.
  var current: (bytes: Data, isLast: Bool) {
    let window = rest.prefix(maxByteCount)
    return (window, isLastChunk && window.count == rest.count)
  }

  mutating func consume(_ byteCount: Int) { rest = rest.dropFirst(byteCount) }

  /// Replaces the current chunk with the source's next one, and waits for it if necessary.
  mutating func fetch() async throws { (rest, isLastChunk) = try await source.next() }
}
