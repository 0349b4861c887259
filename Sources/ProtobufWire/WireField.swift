/// Where a field of a serialized message is.
///
/// Ranges are offsets into the bytes that were read.
package struct WireField: Sendable, Hashable {
  package let number: Int32
  package let type: WireType
  /// The whole field, its tag included.
  package let range: Range<Int>
  /// The value, without the tag and, in a length-delimited field, the length.
  package let value: Range<Int>
}

extension [WireField] {
  /// The contents of the only field with this number; `nil` when there is none, several, or one that is not
  /// length-delimited.
  package func soleContents(of number: Int32) -> Range<Int>? {
    let named = filter { $0.number == number }
    guard named.count == 1, named[0].type == .lengthDelimited else { return nil }
    return named[0].value
  }

  /// The message that remains when every field with this number is left out of `bytes`, from which these were read.
  package func bytes(without number: Int32, of bytes: RawSpan) -> [UInt8] {
    bytes.withUnsafeBytes { bytes in
      reduce(into: []) { rest, field in if field.number != number { rest += bytes[field.range] } }
    }
  }
}
