/// Counts the bytes of an image that come in and go out.
///
/// It is a class because all renditions of an image and their stages share it.
final class ByteFlow {
  /// The number of waiting bytes at which stages stop producing output.
  static let maxWaitingByteCount = 512 * 1024

  /// The size of the image's file in bytes as far as it is known: never more than the whole file.
  ///
  /// It includes bytes that have arrived and are not decoded.
  var receivedByteCount: UInt64 = 0
  /// Whether this is the whole file.
  var isComplete = false
  /// The number of compressed bytes that the caller has not read yet.
  var waitingByteCount = 0

  /// Whether so much output is waiting that work must pause.
  var isFull: Bool { waitingByteCount >= Self.maxWaitingByteCount }
}
