internal import FoundationEssentials
internal import ImagePipeline
internal import ResultCache

/// Supplies the bytes of one image.
///
/// A source belongs to one job.
protocol ImageSource: AnyObject {
  /// The next bytes of the image, and whether none follow.
  ///
  /// Waits until there are some. Not called again after the last.
  func next() async throws -> (bytes: Data, isLast: Bool)

  /// Whether every byte of the image has arrived.
  var isComplete: Bool { get }

  /// Bytes that the source itself holds in memory until the image has ended.
  var bufferedByteCount: Int { get }
}

/// An image that came in one message.
final class WholeImage: ImageSource {
  private let bytes: Data

  init(_ bytes: Data) { self.bytes = bytes }

  var isComplete: Bool { true }
  var bufferedByteCount: Int { bytes.count }

  func next() async throws -> (bytes: Data, isLast: Bool) { (bytes, true) }
}

/// Computes the hash of another source's bytes as they pass.
final class HashingSource: ImageSource {
  private let source: any ImageSource
  /// Of the bytes so far.
  private(set) var hasher = InputHasher()

  init(_ source: any ImageSource) { self.source = source }

  var isComplete: Bool { source.isComplete }
  var bufferedByteCount: Int { source.bufferedByteCount }

  func next() async throws -> (bytes: Data, isLast: Bool) {
    let (bytes, isLast) = try await source.next()
    bytes.withUnsafeBytes { hasher.update($0) }
    return (bytes, isLast)
  }
}

/// A source's bytes in windows: what is worked on between two looks at the output.
struct SourceWindows {
  /// A strip of a large image needs about as many bytes.
  static let byteCount = 128 * 1024

  private let source: any ImageSource
  private var rest = Data()
  /// Whether no byte follows the current chunk.
  private(set) var isLastChunk = false

  init(_ source: any ImageSource) { self.source = source }

  /// What is left of the current chunk.
  var chunk: Data { rest }
  /// Whether the current chunk is used up.
  var isEmpty: Bool { rest.isEmpty }
  /// Whether at most one window is left of the image.
  var isNearEnd: Bool { isLastChunk && rest.count <= Self.byteCount }

  /// The next bytes to work on, and whether none follow.
  var current: (bytes: Data, isLast: Bool) {
    let window = rest.prefix(Self.byteCount)
    return (window, isLastChunk && window.count == rest.count)
  }

  mutating func consume(_ byteCount: Int) { rest = rest.dropFirst(byteCount) }

  /// Waits for the source's next chunk, in place of the current one.
  mutating func fetch() async throws { (rest, isLastChunk) = try await source.next() }
}
