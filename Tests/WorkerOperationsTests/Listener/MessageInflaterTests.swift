import CLibZ
import GRPCCore
import NIOCore
import Testing

@testable import WorkerOperations

@Suite("MessageInflater")
struct MessageInflaterTests {
  /// Pushes bytes in parts and returns the whole output.
  private func inflate(
    _ bytes: [UInt8], _ format: MessageInflater.Format, part: Int, limit: Int = 1 << 20,
    allowance: InflationAllowance = InflationAllowance(1 << 24)
  ) throws(RequestRefusal) -> [UInt8] {
    var inflater = try MessageInflater(format, limit: Self.limit(limit), allowance: allowance)
    var output: [UInt8] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      inflater.push(ByteBuffer(bytes: rest.prefix(part)))
      output += try inflater.messages().messages.flatMap(\.readableBytesView)
      rest = rest.dropFirst(part)
    }
    return output
  }

  private static func limit(_ byteCount: Int) -> MessageLimit {
    MessageLimit(byteCount: byteCount, readByteCount: byteCount)
  }

  private static let text = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7 * 31) }

  @Test(
    "returns the messages, however they are split", arguments: [MessageInflater.Format.gzip, .deflate],
    [1, 7, 4096, .max])
  func parts(format: MessageInflater.Format, part: Int) throws {
    let plain: [UInt8] = [0, 0, 0, 0, 2, 8, 9]
    let bytes = try compress(Self.text, format) + plain + compress([], format) + compress([5], format)
    let length = Self.text.count
    var expected: [UInt8] = [0, 0, UInt8(length >> 16), UInt8(length >> 8 & 255), UInt8(length & 255)]
    expected += Self.text
    expected += plain
    expected += [0, 0, 0, 0, 0]
    expected += [0, 0, 0, 0, 1, 5]
    #expect(try inflate(bytes, format, part: part) == expected)
  }

  @Test("refuses a message above its limit, and releases its memory")
  func bomb() throws {
    let allowance = InflationAllowance(3 << 20)
    let bomb = try compress([UInt8](repeating: 0, count: 8 << 20), .gzip)
    for _ in 0..<4 {
      let error = #expect(throws: RequestRefusal.self) {
        try inflate(bomb, .gzip, part: 512, limit: 2 << 20, allowance: allowance)
      }
      #expect(error?.code == .failedPrecondition && error?.reason == "LIMIT_EXCEEDED")
      #expect(error?.limit?.name == "max_message_bytes" && error?.limit?.limit == 2 << 20)
      #expect(error?.message.contains("max_message_bytes, which allows 2097152") == true)
    }
    #expect(allowance.take(3 << 20))
  }

  @Test("refuses a message that exceeds the limit of all calls")
  func room() throws {
    let bytes = try compress([UInt8](repeating: 1, count: 1 << 20), .deflate)
    let error = #expect(throws: RequestRefusal.self) {
      try inflate(bytes, .deflate, part: .max, allowance: InflationAllowance(1 << 19))
    }
    #expect(error?.code == .resourceExhausted && error?.reason == "OVERLOADED" && error?.retryDelay != nil)
  }

  @Test("charges the worker's memory, and refuses if there is no room")
  func account() throws {
    let bytes = try compress([UInt8](repeating: 1, count: 1 << 20), .gzip)
    for (limit, isRead) in [(2 << 20, true), (1 << 19, false)] {
      let account = MessageAccount(room: limit)
      let allowance = InflationAllowance(4 << 20, memory: account)
      if isRead {
        _ = try inflate(bytes, .gzip, part: 4096, allowance: allowance)
        #expect(account.now.maxHeldByteCount == 1 << 20)
      } else {
        let error = #expect(throws: RequestRefusal.self) {
          try inflate(bytes, .gzip, part: 4096, allowance: allowance)
        }
        #expect(error?.code == .resourceExhausted && account.now.maxHeldByteCount <= limit)
      }
      #expect(account.now.heldByteCount == 0)
    }
  }

  @Test("charges each message until its memory is freed, also one that is not compressed", arguments: [true, false])
  func charges(isCompressed: Bool) throws {
    let text = [UInt8](repeating: 1, count: 1 << 20)
    let bytes = isCompressed ? try compress(text, .gzip) : [0, 0, 16, 0, 0] + text
    let account = MessageAccount(room: 3 << 20)
    let allowance = InflationAllowance(3 << 20, memory: account)
    var inflater = try MessageInflater(.gzip, limit: Self.limit(2 << 20), allowance: allowance)
    var kept: [ByteBuffer] = []
    // A call has more messages than there is room for, if it is not for all at the same time.
    for count in 1...6 {
      inflater.push(ByteBuffer(bytes: bytes))
      kept += try inflater.messages().messages
      #expect(kept.last.map { Array($0.readableBytesView.dropFirst(5)) } == text)
      #expect(account.now.heldByteCount == kept.count << 20)
      if count % 3 == 0 { kept.removeAll() }
    }
    kept = []
    inflater.push(ByteBuffer(bytes: bytes.dropLast(20)))
    _ = try inflater.messages()
    #expect(account.now.heldByteCount > 0)
    inflater = try MessageInflater(.gzip, limit: Self.limit(2 << 20), allowance: allowance)
    #expect(account.now.heldByteCount == 0)
  }

  @Test("lets others have their turn while it decompresses", arguments: [16 << 20, 0])
  func turns(byteCount: Int) throws {
    var inflater = try MessageInflater(.gzip, limit: Self.limit(32 << 20), allowance: InflationAllowance(1 << 26))
    let count = byteCount > 0 ? 1 : 20_000
    let message = try compress([UInt8](repeating: 0, count: byteCount), .gzip)
    inflater.push(ByteBuffer(bytes: repeatElement(message, count: count).joined()))
    let (messages, turnCount) = try inflater.messages()
    #expect(messages.count == count && messages.allSatisfy { $0.readableBytes == 5 + byteCount })
    #expect((4...32).contains(turnCount))
  }

  @Test("survives damage", arguments: [MessageInflater.Format.gzip, .deflate])
  func damage(format: MessageInflater.Format) throws {
    let bytes = try compress(Array(Self.text.prefix(3000)), format)
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= UInt8(1 << (index % 8))
      _ = try? inflate(damaged, format, part: 100)
      _ = try? inflate(Array(bytes.prefix(index)) + bytes.suffix(3), format, part: 100)
    }
  }
}

extension MessageInflater {
  /// Returns the messages that the received bytes complete, and how many turns that takes.
  fileprivate mutating func messages() throws(RequestRefusal) -> (messages: [ByteBuffer], turnCount: Int) {
    var (messages, turnCount) = ([ByteBuffer](), 1)
    while true {
      switch try next() {
      case .message(let message): messages.append(message)
      case .needsTime: turnCount += 1
      case .needsBytes: return (messages, turnCount)
      }
    }
  }
}

struct CompressionFailed: Error {}

/// Returns a compressed gRPC message.
func compress(_ bytes: [UInt8], _ format: MessageInflater.Format) throws -> [UInt8] {
  var count = compressBound(UInt(bytes.count))
  var content = [UInt8](repeating: 0, count: Int(count))
  guard compress2(&content, &count, bytes, UInt(bytes.count), 9) == Z_OK else { throw CompressionFailed() }
  content = Array(content.prefix(Int(count)))
  if format == .gzip {
    // Replace zlib's header and checksum with those of gzip.
    let end = [UInt32(crc32(0, bytes, UInt32(bytes.count))), UInt32(bytes.count)]
    content = [31, 139, 8, 0, 0, 0, 0, 0, 0, 255] + content.dropFirst(2).dropLast(4)
    content += end.flatMap { word in [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: word >> $0) } }
  }
  let size = UInt32(content.count)
  return [1] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: size >> $0) } + content
}
