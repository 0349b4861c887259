internal import CLibZ
internal import NIOCore
internal import Synchronization

/// The shared limit on decompressed message bytes of all calls.
final class InflationAllowance: Sendable {
  private let left: Mutex<Int>
  private let memory: any MessageMemory

  /// Creates an allowance of `byteCount` bytes, which are also charged to `memory`.
  init(_ byteCount: Int, memory: any MessageMemory = UnlimitedMemory()) {
    left = Mutex(byteCount)
    self.memory = memory
  }

  func take(_ byteCount: Int) -> Bool {
    let isTaken = left.withLock { left in
      guard left >= byteCount else { return false }
      left -= byteCount
      return true
    }
    guard isTaken, !memory.holdNow(byteCount) else { return isTaken }
    left.withLock { $0 += byteCount }
    return false
  }

  func giveBack(_ byteCount: Int) {
    left.withLock { $0 += byteCount }
    memory.endHold(byteCount)
  }
}

/// Decompresses the messages of one call as they arrive.
///
/// grpc-swift-2 decompresses a message only when it has arrived completely, does not charge its memory to the worker's
/// account, and answers a message that is too large with INTERNAL. Here every piece is charged before it is buffered.
///
/// Needed with grpc-swift-nio-transport 2.9.2.
struct MessageInflater: ~Copyable {
  /// The supported encodings, with gRPC's names.
  enum Format: String {
    case gzip
    /// DEFLATE with a zlib header.
    case deflate
  }

  /// The position of the next input byte in the stream of messages.
  private enum State {
    case prefix
    /// An uncompressed message, with the number of bytes still expected.
    case plain(Int)
    case compressed(Int)
  }

  private static let pieceByteCount = 64 << 10

  private let limit: MessageLimit
  private let allowance: InflationAllowance
  private let inflater: UnsafeMutableRawPointer
  private var state = State.prefix
  private var input = ByteBuffer()
  private var message = ByteBuffer()
  private var isEnded = false
  private var charged = 0

  /// Creates a decompressor.
  ///
  /// - Parameters:
  ///   - format: The encoding of the call's messages.
  ///   - limit: The limit on each message after decompression.
  ///   - allowance: The shared limit that decompressed bytes are charged to.
  /// - Throws: `RequestRefusal` if there is no memory for it.
  init(_ format: Format, limit: MessageLimit, allowance: InflationAllowance) throws(RequestRefusal) {
    guard let inflater = clibz_inflater_create(format == .gzip ? 31 : 15) else { throw Self.noRoom }
    self.inflater = inflater
    self.limit = limit
    self.allowance = allowance
  }

  deinit {
    clibz_inflater_destroy(inflater)
    allowance.giveBack(charged)
  }

  /// Whether no message has begun.
  var isBetweenMessages: Bool { if case .prefix = state { input.readableBytes == 0 } else { false } }

  /// Consumes bytes of the call; returns complete decompressed messages and the bytes of uncompressed ones.
  mutating func push(_ bytes: ByteBuffer) throws(RequestRefusal) -> ByteBuffer {
    var bytes = bytes
    input.writeBuffer(&bytes)
    var output = ByteBuffer()
    while try step(&output) {}
    input.discardReadBytes()
    return output
  }

  /// Processes buffered input; returns `false` if more input is needed.
  private mutating func step(_ output: inout ByteBuffer) throws(RequestRefusal) -> Bool {
    switch state {
    case .prefix:
      guard let flag = input.getInteger(at: input.readerIndex, as: UInt8.self),
        let length = input.getInteger(at: input.readerIndex + 1, as: UInt32.self)
      else { return false }
      guard length <= limit.byteCount else { throw limit.refusal(Int(length), measure: "at least ") }
      input.moveReaderIndex(forwardBy: MessageAssembler.prefixByteCount)
      if flag == 0 {
        write(length: Int(length), &output)
        state = .plain(Int(length))
      } else {
        try begin()
        state = .compressed(Int(length))
      }
    case .plain(0): state = .prefix
    case .plain(let left):
      guard var part = input.readSlice(length: min(left, input.readableBytes)), part.readableBytes > 0 else {
        return false
      }
      state = .plain(left - part.readableBytes)
      output.writeBuffer(&part)
    case .compressed(0):
      guard isEnded else { throw RequestRefusal(code: .invalidArgument, message: "a compressed message is truncated") }
      write(length: message.readableBytes, &output)
      output.writeBuffer(&message)
      message = ByteBuffer()
      state = .prefix
    case .compressed(let left):
      let count = min(left, input.readableBytes)
      guard count > 0 else { return false }
      try inflate(count)
      state = .compressed(left - count)
    }
    return true
  }

  private func write(length: Int, _ output: inout ByteBuffer) {
    output.writeInteger(UInt8(0))
    output.writeInteger(UInt32(length))
  }

  private mutating func begin() throws(RequestRefusal) {
    isEnded = false
    guard clibz_inflater_reset(inflater) == Z_OK else {
      throw RequestRefusal(code: .invalidArgument, message: "a message cannot be decompressed")
    }
  }

  /// Decompresses the next `count` bytes of input.
  private mutating func inflate(_ count: Int) throws(RequestRefusal) {
    guard var part = input.readSlice(length: count) else { return }
    while !isEnded {
      let before = message.readableBytes
      let (status, consumed) = inflatePiece(part)
      part.moveReaderIndex(forwardBy: consumed)
      let produced = message.readableBytes - before
      guard allowance.take(produced) else { throw Self.noRoom }
      charged += produced
      guard message.readableBytes <= limit.byteCount else {
        throw limit.refusal(message.readableBytes, measure: "at least ")
      }
      switch status {
      case Z_STREAM_END: isEnded = true
      case Z_OK where produced == Self.pieceByteCount || part.readableBytes > 0: continue
      case Z_OK, Z_BUF_ERROR: return
      default: throw RequestRefusal(code: .invalidArgument, message: "a message cannot be decompressed")
      }
    }
    guard part.readableBytes == 0 else {
      throw RequestRefusal(code: .invalidArgument, message: "a compressed message has bytes after its end")
    }
  }

  /// Decompresses at most `pieceByteCount` bytes; returns zlib's status and the number of bytes of `part` consumed.
  private mutating func inflatePiece(_ part: ByteBuffer) -> (status: Int32, consumed: Int) {
    let inflater = inflater
    return part.withUnsafeReadableBytes { source in
      var (status, consumed) = (Z_OK, source.count)
      message.writeWithUnsafeMutableBytes(minimumWritableBytes: Self.pieceByteCount) { target in
        var produced = Self.pieceByteCount
        status = clibz_inflater_push(inflater, source.baseAddress, &consumed, target.baseAddress, &produced)
        return produced
      }
      return (status, consumed)
    }
  }

  private static var noRoom: RequestRefusal {
    .overloaded("there is no memory to decompress the message")
  }
}
