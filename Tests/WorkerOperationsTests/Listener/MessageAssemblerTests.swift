import NIOCore
import Synchronization
import Testing
import WorkThreads

@testable import WorkerOperations

@Suite("MessageAssembler")
struct MessageAssemblerTests {
  private static func message(_ length: Int) -> ByteBuffer {
    var bytes = ByteBuffer()
    bytes.writeInteger(UInt8(0))
    bytes.writeInteger(UInt32(length))
    for index in 0..<length { bytes.writeInteger(UInt8(truncatingIfNeeded: index / 3 * 7)) }
    return bytes
  }

  /// Assembles messages from pieces; their charges are counted in `charged`.
  private func assemble(_ input: ByteBuffer, pieceByteCount: Int, charged: Counter) throws -> [ByteBuffer] {
    var (assembler, rest, messages) = (MessageAssembler(), input, [ByteBuffer]())
    while rest.readableBytes > 0, let piece = rest.readSlice(length: min(pieceByteCount, rest.readableBytes)) {
      assembler.push(piece)
      steps: while true {
        switch assembler.next() {
        case .message(let message): messages.append(message)
        case .needsMemory(let byteCount):
          charged.value.withLock { $0 += byteCount }
          let charge = Claim { charged.value.withLock { $0 -= byteCount } }
          let memory = try #require(ByteBuffer.charged(capacity: byteCount, charge: charge))
          assembler.begin(memory, byteCount: byteCount)
        case .needsBytes: break steps
        }
      }
      assembler.keep()
    }
    #expect(assembler.isEmpty)
    return messages
  }

  private final class Counter: Sendable { let value = Mutex(0) }

  @Test("returns the messages, whatever the pieces", arguments: [1, 3, 1000, 65_536, .max])
  func pieces(pieceByteCount: Int) throws {
    let lengths = [0, 1, 900, 1019, 1020, 5000, 300_000, 7]
    var input = ByteBuffer()
    for length in lengths { input.writeImmutableBuffer(Self.message(length)) }
    let charged = Counter()
    var messages = try assemble(input, pieceByteCount: pieceByteCount, charged: charged)
    #expect(messages == lengths.map(Self.message))
    #expect(charged.value.withLock { $0 } == 1025 + 5005 + 300_005)
    let slice = messages[6].getSlice(at: 0, length: 9)
    messages = []
    #expect(charged.value.withLock { $0 } == 300_005)
    #expect(slice?.readableBytes == 9)
  }

  @Test("the charge of a message ends when the last slice of its memory does", arguments: [2000, 33 << 20])
  func charge(capacity: Int) throws {
    let ends = Counter()
    var buffer = ByteBuffer.charged(
      capacity: capacity, charge: Claim { ends.value.withLock { $0 += 1 } })
    #expect(buffer?.capacity == capacity)
    buffer?.writeBytes([1, 2, 3])
    var slice = buffer?.getSlice(at: 1, length: 2)
    buffer = nil
    #expect(ends.value.withLock { $0 } == 0)
    #expect(slice?.getInteger(at: 0, as: UInt8.self) == 2)
    slice = nil
    #expect(ends.value.withLock { $0 } == 1)
    // A buffer that grows beyond its memory keeps its bytes.
    buffer = ByteBuffer.charged(capacity: capacity, charge: Claim { ends.value.withLock { $0 += 1 } })
    buffer?.writeRepeatingByte(9, count: capacity + 1)
    for index in [0, capacity] { #expect(buffer?.getInteger(at: index, as: UInt8.self) == 9) }
    buffer = nil
    #expect(ends.value.withLock { $0 } == 2)
  }

  @Test("bytes that wait keep no larger buffer")
  func kept() {
    var assembler = MessageAssembler()
    let received = ByteBuffer(repeating: 0, count: 1 << 20)
    assembler.push(received.getSlice(at: 0, length: 3) ?? ByteBuffer())
    _ = assembler.next()
    assembler.keep()
    #expect(!assembler.isEmpty && assembler.missingByteCount == 0)
    assembler.push(ByteBuffer(bytes: [0, 4, 9, 9, 9, 9]))
    guard case .message(let message) = assembler.next() else {
      Issue.record("no message")
      return
    }
    #expect(message.readableBytes == 9 && message.capacity < 1024)
  }
}
