internal import NIOCore

/// Assembles the messages of one call, each in memory that is charged before its bytes are read.
///
/// grpc-swift-2 would append the bytes to a buffer that grows, which copies them, and which no limit applies to. A
/// message that is passed to it whole is used as it is.
///
/// Needed with grpc-swift-nio-transport 2.9.2.
struct MessageAssembler {
  /// The next step of the assembly.
  enum Step {
    /// A complete message, with its prefix.
    case message(ByteBuffer)
    /// A message of so many bytes, with its prefix, needs memory; `begin` supplies it.
    case needsMemory(Int)
    /// More bytes must arrive.
    case needsBytes
  }

  private enum State {
    case prefix
    case waiting
    /// The number of bytes that the message still misses.
    case filling(Int)
  }

  static let prefixByteCount = 5
  /// The maximum size in bytes of a message that is not charged, with its prefix.
  static let maxFreeByteCount = 1024

  private var state = State.prefix
  /// Bytes that are not part of a message in memory yet.
  private var input = ByteBuffer()
  private var isInputOwned = true
  private var message = ByteBuffer()

  /// Whether no message has begun.
  var isEmpty: Bool { if case .prefix = state { input.readableBytes == 0 } else { false } }

  /// The size in bytes of the message in memory, with its prefix.
  var messageByteCount: Int { message.capacity }

  /// The number of bytes that the message in memory still misses.
  var missingByteCount: Int { if case .filling(let rest) = state { rest } else { 0 } }

  /// Adds received bytes; `next` and `keep` must follow.
  mutating func push(_ part: ByteBuffer) {
    if input.readableBytes > 0 {
      input.writeImmutableBuffer(part)
    } else {
      input = part
      isInputOwned = false
    }
  }

  /// Copies the bytes that are left, so that they do not keep the larger buffer that they were received in.
  mutating func keep() {
    if input.readableBytes == 0 {
      input = ByteBuffer()
    } else if !isInputOwned {
      input = ByteBuffer(bytes: input.readableBytesView)
    } else if input.readerIndex > input.readableBytes {
      input.discardReadBytes()
    }
    isInputOwned = true
  }

  /// Continues the assembly as far as the received bytes allow.
  mutating func next() -> Step {
    switch state {
    case .waiting: return .needsBytes
    case .prefix:
      guard let length = input.getInteger(at: input.readerIndex + 1, as: UInt32.self) else { return .needsBytes }
      let byteCount = Int(length) + Self.prefixByteCount
      if byteCount > Self.maxFreeByteCount {
        state = .waiting
        return .needsMemory(byteCount)
      }
      guard let small = input.readSlice(length: byteCount) else { return .needsBytes }
      return .message(ByteBuffer(bytes: small.readableBytesView))
    case .filling(let rest):
      guard var part = input.readSlice(length: min(rest, input.readableBytes)) else { return .needsBytes }
      let left = rest - part.readableBytes
      message.writeBuffer(&part)
      state = left > 0 ? .filling(left) : .prefix
      guard left == 0 else { return .needsBytes }
      defer { message = ByteBuffer() }
      return .message(message)
    }
  }

  /// Supplies the memory of the message that `needsMemory` reported.
  mutating func begin(_ memory: ByteBuffer, byteCount: Int) {
    message = memory
    state = .filling(byteCount)
  }
}
