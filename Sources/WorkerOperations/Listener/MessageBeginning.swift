internal import NIOCore

/// Gathers the beginning of a call's first message, and hands it on in a buffer with room for the rest.
///
/// gRPC's package appends what follows to the buffer it is given first. Left to grow by itself, that buffer is copied each
/// time its size doubles: 16 MB of copies, and 24 MiB at once, for a message of 15 MB. The room is at most
/// `maxRoomPerByte` times what has arrived, so that a length that is only announced reserves nothing.
struct MessageBeginning {
  private static let prefixByteCount = 5
  /// Smaller messages grow cheaply.
  private static let minByteCount = 256 << 10
  private static let maxRoomPerByte = 16

  /// The longest message that is given room; longer ones are refused elsewhere.
  private let maxByteCount: Int
  private var bytes = ByteBuffer()
  private var isDone = false

  init(maxByteCount: Int) { self.maxByteCount = maxByteCount }

  /// Consumes the next bytes of the call.
  ///
  /// - Parameters:
  ///   - part: the bytes.
  ///   - isLast: whether no bytes follow.
  /// - Returns: the bytes that can be handed on; `nil` while they are gathered.
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

  /// Bytes of the message with its prefix; 0 for one that needs no room, `nil` before its length has arrived.
  private var neededRoom: Int? {
    guard let length = bytes.getInteger(at: bytes.readerIndex + 1, as: UInt32.self) else { return nil }
    let room = Int(length) + Self.prefixByteCount
    return room >= Self.minByteCount && Int(length) <= maxByteCount ? room : 0
  }
}
