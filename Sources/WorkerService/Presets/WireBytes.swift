/// A protobuf message as it is put together field by field.
///
/// Source: Protocol Buffers, "Encoding".
struct WireBytes {
  private(set) var bytes: [UInt8] = []

  mutating func append(_ value: Double, field: Int32) {
    appendTag(field, wireType: 1)
    withUnsafeBytes(of: value.bitPattern.littleEndian) { bytes += $0 }
  }

  mutating func append(varint value: UInt64, field: Int32) {
    appendTag(field, wireType: 0)
    appendVarint(value)
  }

  /// Text, or another message.
  mutating func append(_ value: some Collection<UInt8>, field: Int32) {
    appendTag(field, wireType: 2)
    appendVarint(UInt64(value.count))
    bytes += value
  }

  private mutating func appendTag(_ field: Int32, wireType: UInt64) {
    appendVarint(UInt64(field) << 3 | wireType)
  }

  private mutating func appendVarint(_ value: UInt64) {
    var rest = value
    while rest > 0x7F {
      bytes.append(UInt8(rest & 0x7F) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }
}
