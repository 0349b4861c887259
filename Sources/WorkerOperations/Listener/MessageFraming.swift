internal import GRPCCore
internal import NIOCore

/// Follows the framing of a call's messages, which grpc-swift-2 does not check.
///
/// It takes a flag above 1 for that of an uncompressed message, and ignores the beginning of a message that ends early:
/// a unary call then ends with INTERNAL, a stream as if the message had not been sent.
///
/// Needed with grpc-swift-nio-transport 2.9.2.
struct MessageFraming {
  /// The greatest flag: 1 if messages may be compressed.
  private let maxFlag: UInt8
  /// The number of bytes of the current message's prefix that have arrived; 0 to 4.
  private var prefixCount = 0
  private var length = 0
  /// The number of bytes of the current message that have not arrived.
  private var left = 0

  init(isCompressed: Bool) { maxFlag = isCompressed ? 1 : 0 }

  /// Follows the next bytes of the call.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - isLast: Whether no bytes follow.
  /// - Throws: `RequestRefusal` if a flag is invalid or the last message is truncated.
  mutating func push(_ bytes: ByteBuffer, isLast: Bool) throws(RequestRefusal) {
    var rest = bytes.readableBytesView
    while let byte = rest.first {
      guard left == 0 else {
        let count = min(left, rest.count)
        left -= count
        rest = rest.dropFirst(count)
        continue
      }
      try pushPrefix(byte)
      rest = rest.dropFirst()
    }
    guard !isLast || (prefixCount == 0 && left == 0) else {
      throw RequestRefusal(code: .invalidArgument, message: "the last message of the call is truncated")
    }
  }

  private mutating func pushPrefix(_ byte: UInt8) throws(RequestRefusal) {
    if prefixCount > 0 {
      length = length << 8 | Int(byte)
    } else if byte > maxFlag {
      throw RequestRefusal(
        code: .invalidArgument,
        message: byte == 1
          ? "a message is compressed, but the call has no grpc-encoding"
          : "the compressed flag of a message is \(byte); it must be 0 or 1")
    }
    prefixCount += 1
    if prefixCount == MessageAssembler.prefixByteCount { (left, length, prefixCount) = (length, 0, 0) }
  }
}
