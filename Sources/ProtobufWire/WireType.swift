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
