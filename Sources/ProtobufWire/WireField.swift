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

  /// Returns the message without the fields that have this number; `bytes` is the message that was read.
  package func bytes(without number: Int32, of bytes: RawSpan) -> [UInt8] {
    bytes.withUnsafeBytes { bytes in
      reduce(into: []) { rest, field in if field.number != number { rest += bytes[field.range] } }
    }
  }
}
