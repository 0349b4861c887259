/// How the bytes of a field are delimited.
///
/// Source: Protocol Buffers, "Encoding". Groups, which no message of today has, are not among them.
package enum WireType: UInt8, Sendable, Hashable, CaseIterable {
  case varint = 0
  case fixed64 = 1
  /// Text, bytes, a message, or packed numbers.
  case lengthDelimited = 2
  case fixed32 = 5
}
