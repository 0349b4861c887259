/// A reader that locates the fields of a serialized message without copying them.
///
/// Every length is checked against the available bytes, so damaged or hostile input results in an error.
package struct WireReader {
  private var offset: Int
  private let end: Int

  /// The reason why bytes are not the fields of a message.
  package enum Failure: Error, Hashable {
    /// The message ends within a field.
    case truncated
    /// A varint has more than ten bytes.
    case overlongVarint
    /// A field number of 0 or above 536,870,911, or an unknown wire type.
    case invalidTag
    /// A group, which is valid but not supported.
    case group
    /// There are more fields than the caller allows.
    case tooManyFields
  }

  /// Locates the fields of the message at `range` of `bytes`.
  ///
  /// - Parameters:
  ///   - bytes: the bytes that the returned ranges refer to.
  ///   - range: the range of the message; must be within `bytes`.
  ///   - maxCount: the maximum number of fields; limits the memory that a message of many small fields can use.
  /// - Returns: the fields, in their order.
  /// - Throws: `Failure`, at the first byte that is not part of a field.
  package static func fields(
    of bytes: RawSpan, in range: Range<Int>, maxCount: Int = .max
  ) throws(Failure) -> [WireField] {
    var reader = WireReader(range)
    var fields: [WireField] = []
    while let field = try reader.next(of: bytes) {
      guard fields.count < maxCount else { throw .tooManyFields }
      fields.append(field)
    }
    return fields
  }

  /// Creates a reader of the message at `range` of the bytes that `next` is given.
  package init(_ range: Range<Int>) {
    offset = range.lowerBound
    end = range.upperBound
  }

  /// Locates the next field; `nil` at the end of the message.
  /// - Throws: `Failure`, at the first byte that is not part of a field.
  package mutating func next(of bytes: RawSpan) throws(Failure) -> WireField? {
    guard offset < end else { return nil }
    let start = offset
    let tag = try varint(bytes)
    guard tag <= UInt64(UInt32.max), let number = Int32(exactly: tag >> 3), number > 0 else { throw .invalidTag }
    guard let type = WireType(rawValue: UInt8(tag & 7)) else { throw [3, 4].contains(tag & 7) ? .group : .invalidTag }
    var value = offset
    switch type {
    case .varint: _ = try varint(bytes)
    case .fixed64: try skip(8)
    case .fixed32: try skip(4)
    case .lengthDelimited:
      let byteCount = try varint(bytes)
      value = offset
      try skip(byteCount)
    }
    return WireField(number: number, type: type, range: start..<offset, value: value..<offset)
  }

  /// Returns the value of a varint field in `bytes`; bits beyond 64 are discarded, as other readers do.
  package static func varint(_ field: WireField, of bytes: RawSpan) throws(Failure) -> UInt64 {
    var reader = WireReader(field.value)
    return try reader.varint(bytes)
  }

  private mutating func skip(_ byteCount: UInt64) throws(Failure) {
    guard byteCount <= UInt64(end - offset) else { throw .truncated }
    offset += Int(byteCount)
  }

  private mutating func varint(_ bytes: RawSpan) throws(Failure) -> UInt64 {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: 70, by: 7) {
      guard offset < end else { throw .truncated }
      let byte = bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
      offset += 1
      value |= UInt64(byte & 0x7f) << UInt64(shift)
      if byte & 0x80 == 0 { return value }
    }
    throw .overlongVarint
  }
}

/// The location of a field in a serialized message.
///
/// Ranges are offsets into the bytes from which the field was read.
package struct WireField: Sendable, Hashable {
  /// The field number in the schema.
  package let number: Int32
  /// The encoding of the value, from the tag.
  package let type: WireType
  /// The range of the whole field, including its tag.
  package let range: Range<Int>
  /// The range of the value, without the tag and, for a length-delimited field, without the length.
  package let value: Range<Int>
}

extension [WireField] {
  /// Returns the range of the contents of the only field with this number.
  ///
  /// It is `nil` if there is no such field, if there are several, or if it is not length-delimited.
  package func soleContents(of number: Int32) -> Range<Int>? {
    let named = filter { $0.number == number }
    guard named.count == 1, named[0].type == .lengthDelimited else { return nil }
    return named[0].value
  }

  /// Returns the message without the contents that have these numbers; `bytes` is the message that was read.
  package func bytes(without numbers: [Int32], of bytes: RawSpan) -> [UInt8] {
    bytes.withUnsafeBytes { bytes in
      reduce(into: []) { rest, field in
        if field.type != .lengthDelimited || !numbers.contains(field.number) { rest += bytes[field.range] }
      }
    }
  }
}

/// The wire type of a field, which determines how its bytes are delimited.
///
/// Source: Protocol Buffers, "Encoding". Groups are not included; current messages do not use them.
package enum WireType: UInt8, Sendable, Hashable, CaseIterable {
  case varint = 0
  case fixed64 = 1
  /// Text, bytes, a message, or packed numbers.
  case lengthDelimited = 2
  case fixed32 = 5
}
