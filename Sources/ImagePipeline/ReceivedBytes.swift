/// Counts the bytes of the image's file that have arrived, whether they are decoded or not.
///
/// It is a class because all renditions of an image share it.
final class ReceivedBytes {
  /// The size of the file in bytes as far as it is known: never more than the whole file.
  var byteCount: UInt64 = 0
  /// Whether this is the whole file.
  var isComplete = false
}
