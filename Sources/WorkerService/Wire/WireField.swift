/// Where a field of a protobuf message lies.
package struct WireField: Sendable, Hashable {
  let number: UInt64
  /// The field, its tag included.
  let range: Range<Int>
  /// What a length stands before; `nil` for fields of other wire types.
  let body: Range<Int>?

  /// More than a plain message has.
  ///
  /// What has many is left to SwiftProtobuf, which holds nothing for each.
  private static let mostFields = 32

  /// The fields of the message at `range` of `bytes`, in their order.
  ///
  /// - Returns: `nil` when the message is damaged, or has groups or many fields.
  static func fields(of bytes: UnsafeRawBufferPointer, in range: Range<Int>) -> [WireField]? {
    var fields: [WireField] = []
    var cursor = Cursor(bytes: UnsafeRawBufferPointer(rebasing: bytes[..<range.upperBound]), at: range.lowerBound)
    while !cursor.isAtEnd {
      guard fields.count < mostFields, let field = cursor.field() else { return nil }
      fields.append(field)
    }
    return fields
  }

  private struct Cursor {
    let bytes: UnsafeRawBufferPointer
    var at: Int

    var isAtEnd: Bool { at == bytes.count }

    mutating func field() -> WireField? {
      let start = at
      guard let tag = varint(), tag >> 3 > 0, tag <= UInt64(UInt32.max) else { return nil }
      var body: Range<Int>?
      switch tag & 7 {
      case 0: guard varint() != nil else { return nil }
      case 1: guard skip(8) else { return nil }
      case 2:
        guard let count = varint() else { return nil }
        let bodyStart = at
        guard skip(count) else { return nil }
        body = bodyStart..<at
      case 5: guard skip(4) else { return nil }
      default: return nil
      }
      return WireField(number: tag >> 3, range: start..<at, body: body)
    }

    private mutating func skip(_ count: UInt64) -> Bool {
      guard count <= UInt64(bytes.count - at) else { return false }
      at += Int(count)
      return true
    }

    private mutating func varint() -> UInt64? {
      var value: UInt64 = 0
      for shift in stride(from: UInt64(0), to: 63, by: 7) {
        guard at < bytes.count else { return nil }
        let byte = bytes[at]
        at += 1
        value |= UInt64(byte & 0x7F) << shift
        if byte & 0x80 == 0 { return value }
      }
      return nil
    }
  }
}

extension [WireField] {
  /// The bytes of the one field of a number; `nil` when there is none, several, or one of another wire type.
  func soleBody(of number: UInt64) -> Range<Int>? {
    let named = filter { $0.number == number }
    return named.count == 1 ? named[0].body : nil
  }

  /// A message of all fields but those of a number.
  func bytes(without number: UInt64, of bytes: UnsafeRawBufferPointer) -> [UInt8] {
    reduce(into: []) { rest, field in if field.number != number { rest += bytes[field.range] } }
  }
}
