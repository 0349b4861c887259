import NIOCore
import Testing

@testable import WorkerOperations

@Suite("The beginning of a call's first message")
struct MessageBeginningTests {
  private static let maxByteCount = 8 << 20

  private static func message(_ length: Int) -> ByteBuffer {
    var bytes = ByteBuffer()
    bytes.writeInteger(UInt8(0))
    bytes.writeInteger(UInt32(length))
    bytes.writeRepeatingByte(7, count: length)
    return bytes
  }

  /// Returns the output, part by part, when the message is pushed in pieces.
  private static func output(_ message: ByteBuffer, pieceByteCount: Int) -> [ByteBuffer] {
    var beginning = MessageBeginning(maxByteCount: maxByteCount)
    var (rest, parts) = (message, [ByteBuffer]())
    while rest.readableBytes > 0, let piece = rest.readSlice(length: min(pieceByteCount, rest.readableBytes)) {
      if let part = beginning.push(piece, isLast: rest.readableBytes == 0) { parts.append(part) }
    }
    return parts
  }

  @Test(
    "loses no byte, whatever the pieces",
    arguments: [0, 1, 300, 300_000, 3 << 20], [1, 3, 4096, 1 << 20])
  func bytes(length: Int, pieceByteCount: Int) {
    guard length / pieceByteCount < 400_000 else { return }
    let message = Self.message(length)
    var joined = ByteBuffer()
    for part in Self.output(message, pieceByteCount: pieceByteCount) { joined.writeImmutableBuffer(part) }
    #expect(joined == message)
  }

  @Test("gives a large message its full capacity once a sixteenth has arrived")
  func room() throws {
    let message = Self.message(3 << 20)
    let parts = Self.output(message, pieceByteCount: 16 << 10)
    let first = try #require(parts.first)
    #expect(first.readableBytes >= message.readableBytes / 16)
    #expect(first.readableBytes < message.readableBytes / 8)
    #expect(first.capacity >= message.readableBytes)
    #expect(parts.dropFirst().allSatisfy { $0.readableBytes <= 16 << 10 })
  }

  @Test("reserves nothing for a length prefix alone")
  func announced() {
    var beginning = MessageBeginning(maxByteCount: Self.maxByteCount)
    let start = Self.message(Self.maxByteCount).getSlice(at: 0, length: 100) ?? ByteBuffer()
    #expect(beginning.push(start, isLast: false) == nil)
  }

  @Test("does not reserve capacity for a message that is too long")
  func tooLong() {
    var beginning = MessageBeginning(maxByteCount: Self.maxByteCount)
    let start = ByteBuffer(bytes: [0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3])
    let output = beginning.push(start, isLast: false)
    #expect(output?.readableBytes == 8 && output.map { $0.capacity < 1024 } ?? false)
  }
}
