internal import CLibZ
internal import GRPCCore
internal import NIOCore
internal import Synchronization
internal import WorkThreads

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

/// The decompressed bytes of one message in an allowance, until its memory is freed.
private final class InflationCharge: Sendable {
  private let allowance: InflationAllowance
  private let byteCount = Atomic(0)

  init(_ allowance: InflationAllowance) { self.allowance = allowance }

  deinit { allowance.giveBack(byteCount.load(ordering: .relaxed)) }

  func take(_ count: Int) -> Bool {
    guard allowance.take(count) else { return false }
    byteCount.add(count, ordering: .relaxed)
    return true
  }
}

/// Decompresses the messages of one call as they arrive.
///
/// grpc-swift-2 decompresses a message only when it has arrived completely, does not charge its memory to the worker's
/// account, and answers a message that is too large with INTERNAL. Here every piece is charged before it is buffered, also
/// of a message that is not compressed.
///
/// Needed with grpc-swift-nio-transport 2.9.2.
struct MessageInflater: ~Copyable {
  /// The supported encodings, with gRPC's names.
  enum Format: String {
    case gzip
    /// DEFLATE with a zlib header.
    case deflate
  }

  /// The next step of the decompression.
  enum Step {
    /// A complete message, with its prefix.
    case message(ByteBuffer)
    /// There is more to do, which takes so long that others should have their turn before.
    case needsTime
    /// More bytes must arrive.
    case needsBytes
  }

  /// The position of the next input byte in the stream of messages.
  private enum State {
    case prefix
    /// An uncompressed message, with the number of bytes still expected.
    case plain(Int)
    case compressed(Int)
  }

  private static let pieceByteCount = 64 << 10
  /// The number of decompressed bytes after which others have their turn: one or two milliseconds.
  private static let turnByteCount = 1 << 20

  private let limit: MessageLimit
  private let allowance: InflationAllowance
  private let inflater: UnsafeMutableRawPointer
  private var state = State.prefix
  private var input = ByteBuffer()
  /// The current message, with its prefix.
  private var message = ByteBuffer()
  private var charge: InflationCharge?
  private var isEnded = false
  /// Whether more can be decompressed of the consumed bytes.
  private var hasOutput = false
  /// The number of bytes that may be decompressed in this turn.
  private var turnLeft = Self.turnByteCount

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

  deinit { clibz_inflater_destroy(inflater) }

  /// Whether no message has begun.
  var isBetweenMessages: Bool { if case .prefix = state { input.readableBytes == 0 } else { false } }

  /// Adds received bytes; `next` must follow.
  mutating func push(_ bytes: ByteBuffer) { input.writeImmutableBuffer(bytes) }

  /// Continues as far as the received bytes and the turn allow; after `needsTime`, the next call begins another turn.
  mutating func next() throws(RequestRefusal) -> Step {
    while true {
      guard turnLeft > 0 else {
        turnLeft = Self.turnByteCount
        return .needsTime
      }
      switch state {
      case .prefix: guard try readPrefix() else { return needsBytes() }
      case .plain(0): return end()
      case .plain(let left):
        guard let part = input.readSlice(length: min(left, input.readableBytes, Self.pieceByteCount)),
          part.readableBytes > 0
        else { return needsBytes() }
        turnLeft -= part.readableBytes
        message.writeImmutableBuffer(part)
        state = .plain(left - part.readableBytes)
      case .compressed(0) where !hasOutput:
        guard isEnded else {
          throw RequestRefusal(code: .invalidArgument, message: "a compressed message is truncated")
        }
        return end()
      case .compressed(let left):
        let count = min(left, input.readableBytes)
        guard count > 0 || hasOutput else { return needsBytes() }
        state = .compressed(left - (try inflate(count)))
      }
    }
  }

  private mutating func needsBytes() -> Step {
    input.discardReadBytes()
    return .needsBytes
  }

  /// Reads the prefix of the next message; returns `false` if more of it must arrive.
  private mutating func readPrefix() throws(RequestRefusal) -> Bool {
    guard let flag = input.getInteger(at: input.readerIndex, as: UInt8.self),
      let length = input.getInteger(at: input.readerIndex + 1, as: UInt32.self)
    else { return false }
    guard length <= limit.byteCount else { throw limit.refusal(Int(length), measure: "at least ") }
    input.moveReaderIndex(forwardBy: MessageAssembler.prefixByteCount)
    let charge = InflationCharge(allowance)
    // The size of a message that is not compressed itself is known.
    guard flag != 0 || charge.take(Int(length)) else { throw Self.noRoom }
    self.charge = charge
    let byteCount = MessageAssembler.prefixByteCount + (flag == 0 ? Int(length) : Self.pieceByteCount)
    let claim = Claim { withExtendedLifetime(charge) {} }
    guard var message = ByteBuffer.charged(capacity: byteCount, charge: claim) else { throw Self.noRoom }
    // Before there is another reference, with which it would go to a copy without the charge.
    message.writeRepeatingByte(0, count: MessageAssembler.prefixByteCount)
    self.message = message
    if flag == 0 {
      state = .plain(Int(length))
    } else {
      try begin()
      state = .compressed(Int(length))
    }
    return true
  }

  private var messageByteCount: Int { message.readableBytes - MessageAssembler.prefixByteCount }

  /// Charges bytes of the message.
  private mutating func take(_ byteCount: Int) throws(RequestRefusal) {
    guard charge?.take(byteCount) ?? false else { throw Self.noRoom }
    turnLeft -= byteCount
  }

  private mutating func end() -> Step {
    message.setInteger(UInt32(messageByteCount), at: message.readerIndex + 1)
    state = .prefix
    // A small message takes no more memory than it has bytes.
    if message.readableBytes < message.capacity / 2, let charge,
      var exact = ByteBuffer.charged(
        capacity: message.readableBytes, charge: Claim { withExtendedLifetime(charge) {} })
    {
      exact.writeImmutableBuffer(message)
      message = exact
    }
    charge = nil
    // A message without bytes takes time, too.
    turnLeft -= 256
    defer { message = ByteBuffer() }
    return .message(message)
  }

  private mutating func begin() throws(RequestRefusal) {
    (isEnded, hasOutput) = (false, false)
    guard clibz_inflater_reset(inflater) == Z_OK else {
      throw RequestRefusal(code: .invalidArgument, message: "a message cannot be decompressed")
    }
  }

  /// Decompresses at most the next `count` bytes of input; returns how many, all of them unless the turn is over.
  private mutating func inflate(_ count: Int) throws(RequestRefusal) -> Int {
    guard var part = input.getSlice(at: input.readerIndex, length: count) else { return 0 }
    defer { input.moveReaderIndex(forwardBy: count - part.readableBytes) }
    while !isEnded, turnLeft > 0 {
      let before = message.readableBytes
      let (status, consumed) = inflatePiece(part)
      part.moveReaderIndex(forwardBy: consumed)
      let produced = message.readableBytes - before
      try take(produced)
      guard messageByteCount <= limit.byteCount else { throw limit.refusal(messageByteCount, measure: "at least ") }
      hasOutput = status == Z_OK && produced == Self.pieceByteCount
      switch status {
      case Z_STREAM_END: isEnded = true
      case Z_OK where hasOutput || part.readableBytes > 0: continue
      case Z_OK, Z_BUF_ERROR: return count - part.readableBytes
      default: throw RequestRefusal(code: .invalidArgument, message: "a message cannot be decompressed")
      }
    }
    guard !isEnded || part.readableBytes == 0 else {
      throw RequestRefusal(code: .invalidArgument, message: "a compressed message has bytes after its end")
    }
    return count - part.readableBytes
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
