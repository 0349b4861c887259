/// Writes messages of protocol buffers, field by field.
///
/// Spans are many: to make a message of generated code of each, and to have that measure and then write itself, costs
/// several times as much.
struct OTLPWriter {
  private(set) var bytes: [UInt8] = []

  private enum WireType: UInt8 {
    case varint = 0
    case fixed64 = 1
    case bytes = 2
    case fixed32 = 5
  }

  mutating func reserveCapacity(_ byteCount: Int) { bytes.reserveCapacity(byteCount) }

  /// An integer or enumeration; `isPresent` writes 0 too, which only a member of a oneof needs.
  mutating func integer(_ field: UInt8, _ value: UInt64, isPresent: Bool = false) {
    guard value != 0 || isPresent else { return }
    tag(field, .varint)
    varint(value)
  }

  mutating func fixed64(_ field: UInt8, _ value: UInt64, isPresent: Bool = false) {
    guard value != 0 || isPresent else { return }
    tag(field, .fixed64)
    withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func fixed32(_ field: UInt8, _ value: UInt32) {
    guard value != 0 else { return }
    tag(field, .fixed32)
    withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func string(_ field: UInt8, _ text: String, isPresent: Bool = false) {
    guard !text.isEmpty || isPresent else { return }
    start(field, byteCount: text.utf8.count)
    bytes.append(contentsOf: text.utf8)
  }

  mutating func data(_ field: UInt8, _ data: some Collection<UInt8>) {
    start(field, byteCount: data.count)
    bytes.append(contentsOf: data)
  }

  /// Eight bytes of a number, the highest first.
  mutating func identifier(_ field: UInt8, _ value: UInt64) {
    start(field, byteCount: 8)
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  /// Sixteen bytes of a number, the highest first.
  mutating func identifier(_ field: UInt8, high: UInt64, low: UInt64) {
    start(field, byteCount: 16)
    withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { bytes.append(contentsOf: $0) }
  }

  /// What stands in front of `byteCount` bytes, which are appended next.
  mutating func start(_ field: UInt8, byteCount: Int) {
    tag(field, .bytes)
    varint(UInt64(byteCount))
  }

  /// Fields that are written already.
  mutating func append(_ fields: [UInt8]) { bytes += fields }

  /// A message within this one, whose length is put in front of it when it is known.
  mutating func message(_ field: UInt8, _ body: (inout OTLPWriter) -> Void) {
    tag(field, .bytes)
    let start = bytes.count
    bytes.append(0)
    body(&self)
    let length = bytes.count - start - 1
    guard length > 0x7f else {
      bytes[start] = UInt8(length)
      return
    }
    // Most are below 128 bytes, and need no more room.
    var long = OTLPWriter()
    long.varint(UInt64(length))
    bytes.replaceSubrange(start...start, with: long.bytes)
  }

  private mutating func tag(_ field: UInt8, _ type: WireType) {
    varint(UInt64(field) << 3 | UInt64(type.rawValue))
  }

  private mutating func varint(_ value: UInt64) {
    var value = value
    while value > 0x7f {
      bytes.append(UInt8(value & 0x7f) | 0x80)
      value >>= 7
    }
    bytes.append(UInt8(value))
  }
}
