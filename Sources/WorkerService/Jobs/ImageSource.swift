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
  /// The number of frames of a GIF that arrived in one message; see `lateOrientation`.
  var frameCount: Int? { whole.flatMap { ImageReader.frameCount(of: $0.bytes) } }
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

/// The bytes of a source, divided into windows; charged to the caller and hashed for the cache as they arrive.
///
/// A job checks for output after each window.
final class ImageInput {
  /// The default maximum size of a window in bytes.
  static let windowByteCount = ImageServer.windowByteCount

  let source: any ImageSource
  private let maxByteCount: Int
  private let isHashed: Bool
  /// The image of the caller to charge; `nil` until it has begun, or if callers are not identified.
  var charged: CallerImage?
  /// Whether the bytes were charged to it before.
  var areBytesCharged = false
  /// The hash state of the bytes so far, if they are hashed.
  private(set) var hasher = InputHasher()
  /// The unread bytes of the current chunk.
  private(set) var chunk = Data()
  /// Whether no byte follows the current chunk.
  private(set) var isLastChunk = false

  /// - Parameters:
  ///   - source: Supplies the bytes.
  ///   - maxByteCount: The maximum size of a window.
  ///   - isHashed: Whether results are looked up by the hash of the bytes.
  init(_ source: any ImageSource, maxByteCount: Int = ImageInput.windowByteCount, isHashed: Bool = false) {
    self.source = source
    self.maxByteCount = maxByteCount
    self.isHashed = isHashed
  }

  /// Whether at most one window of the default size remains.
  var isNearEnd: Bool { isLastChunk && chunk.count <= Self.windowByteCount }

  /// The next bytes to process, and whether they are the last.
  var current: (bytes: Data, isLast: Bool) {
    let window = chunk.prefix(maxByteCount)
    return (window, isLastChunk && window.count == chunk.count)
  }

  func consume(_ byteCount: Int) { chunk = chunk.dropFirst(byteCount) }

  /// Replaces the current chunk with the source's next one, and waits for it if necessary.
  func fetch() async throws {
    (chunk, isLastChunk) = try await source.next()
    if !areBytesCharged { charged?.use(byteCount: chunk.count) }
    if isHashed { chunk.withUnsafeBytes { hasher.update($0) } }
  }
}
