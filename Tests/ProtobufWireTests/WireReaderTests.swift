import ProtobufWire
import SwiftProtobuf
import TestSupport
import Testing

/// Compares with generated code: fields are found at the same positions, and the same damaged bytes are refused.
@Suite("WireReader")
struct WireReaderTests {
  private func fields(of bytes: [UInt8], maxCount: Int = .max) throws(WireReader.Failure) -> [WireField] {
    try WireReader.fields(of: bytes.span.bytes, in: 0..<bytes.count, maxCount: maxCount)
  }

  private func failure(_ bytes: [UInt8], maxCount: Int = .max) -> WireReader.Failure? {
    do throws(WireReader.Failure) {
      _ = try fields(of: bytes, maxCount: maxCount)
      return nil
    } catch { return error }
  }

  private static func message(_ random: inout SeededGenerator) throws -> [UInt8] {
    let file = Google_Protobuf_FileDescriptorProto.with { file in
      file.name = "n\(UInt8.random(in: .min ... .max, using: &random))"
      file.publicDependency = (0..<3).map { _ in .random(in: .min ... .max, using: &random) }
      file.messageType = (0..<Int.random(in: 0...2, using: &random)).map { _ in .with { $0.name = "m" } }
      file.options = .with { $0.uninterpretedOption = [.with { $0.doubleValue = 1.5 }] }
    }
    var writer = WireWriter()
    writer.fixed32(1000, .random(in: .min ... .max, using: &random))
    writer.fixed64(536_870_911, .random(in: .min ... .max, using: &random))
    return try file.serializedBytes() + writer.bytes
  }

  @Test("finds every field of a message with its number, type and position")
  func places() throws {
    var writer = WireWriter()
    writer.varint(1, 300)
    writer.data(2, [7, 8, 9])
    writer.fixed32(536_870_911, 1)
    writer.fixed64(3, 1)
    let bytes = writer.bytes
    let fields = try fields(of: bytes)
    #expect(fields.map(\.number) == [1, 2, 536_870_911, 3])
    #expect(fields.map(\.type) == [.varint, .lengthDelimited, .fixed32, .fixed64])
    #expect(fields.map(\.range) == [0..<3, 3..<8, 8..<17, 17..<26])
    #expect(fields.map(\.value) == [1..<3, 5..<8, 13..<17, 18..<26])
    #expect(try WireReader.varint(fields[0], of: bytes.span.bytes) == 300)
    #expect(fields.soleContents(of: 2) == 5..<8)
    #expect(fields.soleContents(of: 1) == nil && fields.soleContents(of: 4) == nil)
    #expect(fields.bytes(without: [2], of: bytes.span.bytes) == Array(bytes[0..<3] + bytes[8...]))
    let twice = bytes + bytes
    #expect(try self.fields(of: twice).soleContents(of: 2) == nil)
    #expect(try self.fields(of: twice).bytes(without: [1, 2], of: twice.span.bytes).count == twice.count - 10)
  }

  @Test("reads a message within others' bytes, and nothing beyond its end")
  func range() throws {
    let bytes: [UInt8] = [0xff, 0x08, 0x01, 0x12, 0x02, 0x61, 0x62, 0xff]
    #expect(try WireReader.fields(of: bytes.span.bytes, in: 1..<7).map(\.range) == [1..<3, 3..<7])
    #expect(throws: WireReader.Failure.truncated) { try WireReader.fields(of: bytes.span.bytes, in: 1..<6) }
    #expect(try WireReader.fields(of: bytes.span.bytes, in: 3..<3).isEmpty)
  }

  @Test("reads numbers of one to ten bytes", arguments: [0, 0x7f, 0x80, 1 << 35, UInt64.max >> 1, .max])
  func varints(value: UInt64) throws {
    var writer = WireWriter()
    writer.varint(15, value, isPresent: true)
    let bytes = writer.bytes
    #expect(try WireReader.varint(try fields(of: bytes)[0], of: bytes.span.bytes) == value)
  }

  @Test("describes the problem with bytes that are not a message")
  func failures() {
    #expect(failure([0x08]) == .truncated && failure([0x08, 0x80]) == .truncated && failure([0x80]) == .truncated)
    #expect(failure([0x12, 0x03, 1, 2]) == .truncated && failure([0x12]) == .truncated)
    #expect(failure([0x0d, 1, 2, 3]) == .truncated && failure([0x09, 1, 2, 3, 4, 5, 6, 7]) == .truncated)
    let longest: [UInt8] = Array(repeating: 0xff, count: 9)
    #expect(failure([0x12] + longest + [0x01]) == .truncated, "a length of 2^64 - 1")
    #expect(failure([0x12] + longest.dropLast() + [0x7f]) == .truncated, "a length of 2^63 - 1")
    #expect(failure([0x08] + longest + [0x80, 0x01]) == .overlongVarint)
    #expect(failure([0x08] + longest + [0x01]) == nil)
    #expect(failure([0x00, 0]) == .invalidTag && failure([0x02, 0]) == .invalidTag)
    #expect(failure([0x0e]) == .invalidTag && failure([0x0f]) == .invalidTag)
    #expect(failure([0x80, 0x80, 0x80, 0x80, 0x10, 0]) == .invalidTag, "a field number of 2^29")
    #expect(failure([0x0b, 0x0c]) == .group && failure([0x0c]) == .group)
    #expect(failure([0x08, 1, 0x08, 2], maxCount: 1) == .tooManyFields && failure([0x08, 1], maxCount: 1) == nil)
  }

  @Test("accepts the same damaged, truncated and random bytes as SwiftProtobuf", arguments: 0..<8 as Range<UInt64>)
  func damaged(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var accepted = 0
    var refused = 0
    for _ in 0..<2000 {
      var bytes = try Self.message(&random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        bytes = (0..<Int.random(in: 0...12, using: &random)).map { _ in .random(in: .min ... .max, using: &random) }
      case 1: bytes.removeLast(Int.random(in: 0...bytes.count, using: &random))
      default:
        for _ in 0..<Int.random(in: 1...2, using: &random) {
          bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: .min ... .max, using: &random)
        }
      }
      // A message type without fields keeps all well-formed fields as unknown ones.
      let usual = try? Google_Protobuf_Empty(serializedBytes: bytes)
      switch failure(bytes) {
      case nil:
        accepted += 1
        #expect(usual != nil, "\(bytes)")
      case .group: continue
      default:
        refused += 1
        #expect(usual == nil, "\(bytes)")
      }
    }
    #expect(accepted > 200 && refused > 200)
  }
}
