internal import NIOCore

/// Buffers the beginning of a call's first message and forwards it in a buffer with capacity for the rest.
///
/// grpc-swift-2 appends later bytes to the first buffer that it receives. If that buffer grew by itself, it would be
/// copied each time its size doubles: 16 MB of copies, and a peak of 24 MiB, for a message of 15 MB. The capacity is at
/// most `maxRoomPerByte` times the bytes received, so that a length prefix alone reserves no memory.
struct MessageBeginning {
  private static let prefixByteCount = 5
  /// Messages below this size are cheap to grow.
  private static let minByteCount = 256 << 10
  private static let maxRoomPerByte = 16

  /// Maximum size of a message that gets capacity in advance; larger ones are refused elsewhere.
  private let maxByteCount: Int
  private var bytes = ByteBuffer()
  private var isDone = false

  init(maxByteCount: Int) { self.maxByteCount = maxByteCount }

  /// Consumes the next bytes of the call.
  ///
  /// - Parameters:
  ///   - part: The bytes.
  ///   - isLast: Whether no bytes follow.
  /// - Returns: The bytes to forward, or `nil` while the beginning is still incomplete.
  mutating func push(_ part: ByteBuffer, isLast: Bool) -> ByteBuffer? {
    guard !isDone else { return part }
    if bytes.readableBytes == 0 { bytes = part } else { bytes.writeImmutableBuffer(part) }
    let room = neededRoom
    guard isLast || room.map({ $0 <= bytes.readableBytes * Self.maxRoomPerByte }) ?? false else { return nil }
    isDone = true
    defer { bytes = ByteBuffer() }
    if let room, room > bytes.readableBytes { bytes.reserveCapacity(room) }
    return bytes
  }

  /// Size of the message with its prefix, in bytes; 0 if it needs no capacity, `nil` if its length has not arrived.
  private var neededRoom: Int? {
    guard let length = bytes.getInteger(at: bytes.readerIndex + 1, as: UInt32.self) else { return nil }
    let room = Int(length) + Self.prefixByteCount
    return room >= Self.minByteCount && Int(length) <= maxByteCount ? room : 0
  }
}
