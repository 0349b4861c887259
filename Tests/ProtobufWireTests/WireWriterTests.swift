import Foundation
import ProtobufWire
import SwiftProtobuf
import TestSupport
import Testing

/// Compares written messages with those of generated code.
@Suite("WireWriter")
struct WireWriterTests {
  private typealias Option = Google_Protobuf_UninterpretedOption

  /// Returns numbers of every encoded length, including those where the length changes.
  private static func number(_ random: inout SeededGenerator) -> UInt64 {
    let edges: [UInt64] = [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, UInt64(Int64.max), 1 << 63, .max]
    let bits = UInt64.random(in: .min ... .max, using: &random)
    return Bool.random(using: &random) ? edges.randomElement(using: &random) ?? 0 : bits >> (bits % 64)
  }

  private static func text(_ random: inout SeededGenerator) -> String {
    let byteCount = [0, 1, 127, 128, 129, 300, 20_000].randomElement(using: &random) ?? 0
    return String((0..<byteCount).map { _ in ["a", "ü", "🌲"].randomElement(using: &random) ?? "a" })
  }

  private static func option(_ random: inout SeededGenerator) -> Option {
    .with { option in
      option.name = (0..<Int.random(in: 0...4, using: &random)).map { _ in
        .with { ($0.namePart, $0.isExtension) = (text(&random), .random(using: &random)) }
      }
      if Bool.random(using: &random) { option.identifierValue = text(&random) }
      if Bool.random(using: &random) { option.positiveIntValue = number(&random) }
      if Bool.random(using: &random) { option.negativeIntValue = Int64(bitPattern: number(&random)) }
      if Bool.random(using: &random) { option.doubleValue = Double(bitPattern: number(&random)) }
      if Bool.random(using: &random) { option.stringValue = .init(text(&random).utf8) }
    }
  }

  private static func write(_ option: Option) -> [UInt8] {
    var writer = WireWriter()
    for part in option.name {
      writer.message(2) { name in
        name.string(1, part.namePart, isPresent: true)
        name.varint(2, part.isExtension ? 1 : 0, isPresent: true)
      }
    }
    if option.hasIdentifierValue { writer.string(3, option.identifierValue, isPresent: true) }
    if option.hasPositiveIntValue { writer.varint(4, option.positiveIntValue, isPresent: true) }
    if option.hasNegativeIntValue { writer.varint(5, UInt64(bitPattern: option.negativeIntValue), isPresent: true) }
    if option.hasDoubleValue { writer.fixed64(6, option.doubleValue.bitPattern, isPresent: true) }
    if option.hasStringValue { writer.data(7, Array(option.stringValue)) }
    return writer.bytes
  }

  @Test("writes random messages byte for byte as SwiftProtobuf does", arguments: 0..<8 as Range<UInt64>)
  func random(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<40 {
      let option = Self.option(&random)
      #expect(try Self.write(option) == option.serializedBytes())
    }
  }

  @Test("omits zeros and empty text where presence does not matter")
  func implicitPresence() {
    var writer = WireWriter()
    writer.varint(1, 0)
    writer.fixed64(2, 0)
    writer.fixed32(3, 0)
    writer.string(4, "")
    #expect(writer.bytes.isEmpty)
    writer.varint(1, 0, isPresent: true)
    writer.fixed64(2, 0, isPresent: true)
    writer.fixed32(3, 0, isPresent: true)
    writer.string(4, "", isPresent: true)
    writer.data(5, [])
    #expect(
      writer.bytes == [0x08, 0, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0x1d, 0, 0, 0, 0, 0x22, 0, 0x2a, 0])
  }

  @Test("writes fixed numbers in little-endian order, and big-endian data as such")
  func byteOrder() {
    var writer = WireWriter()
    writer.fixed32(1, 0x0102_0304)
    writer.bigEndian(2, 0x0102_0304_0506_0708)
    writer.bigEndian(3, high: 1, low: 2)
    #expect(writer.bytes.prefix(5) == [0x0d, 4, 3, 2, 1])
    #expect(writer.bytes.dropFirst(5).prefix(10) == [0x12, 8, 1, 2, 3, 4, 5, 6, 7, 8])
    let pair: [UInt8] = Array(repeating: 0, count: 7) + [1] + Array(repeating: 0, count: 7) + [2]
    #expect(Array(writer.bytes.dropFirst(15)) == [0x1a, 16] + pair)
  }

  @Test("writes the length before a message of any length at any depth")
  func nested() throws {
    for byteCount in [0, 1, 125, 126, 127, 128, 16_381, 16_384] {
      var writer = WireWriter()
      writer.message(1) { outer in
        outer.message(2) { inner in inner.data(3, Array(repeating: 7, count: byteCount)) }
      }
      let outer = try fields(of: writer.bytes)
      let inner = try fields(of: Array(writer.bytes[outer[0].value]))
      let data = try fields(of: Array(Array(writer.bytes[outer[0].value])[inner[0].value]))
      #expect(outer.count == 1 && inner.count == 1 && data.count == 1)
      #expect(outer[0].range == 0..<writer.bytes.count && data[0].value.count == byteCount)
    }
  }

  @Test("inserts a header before fields that are already written")
  func header() {
    var inner = WireWriter()
    inner.varint(1, 300)
    var writer = WireWriter()
    writer.header(9, byteCount: inner.bytes.count)
    writer.append(inner.bytes)
    var whole = WireWriter()
    whole.message(9) { $0.varint(1, 300) }
    #expect(writer.bytes == whole.bytes && whole.bytes == [0x4a, 3, 0x08, 0xac, 0x02])
  }

  private func fields(of bytes: [UInt8]) throws -> [WireField] {
    try WireReader.fields(of: bytes.span.bytes, in: 0..<bytes.count)
  }
}
