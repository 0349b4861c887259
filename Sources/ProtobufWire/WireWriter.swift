/// A writer that builds a protobuf message field by field.
///
/// Use it where a value of generated code per message would be too expensive, because such a value computes its size
/// before it is written, and for messages whose fields are known only at run time. Fields appear in the order in which
/// they are written. Field numbers are 1 to 536,870,911. The writer can be inlined into other modules, because spans
/// are written with it on every call.
package struct WireWriter: Sendable {
  @usableFromInline var storage: [UInt8] = []

  @inlinable package init() {}

  /// The serialized fields so far.
  @inlinable package var bytes: [UInt8] { storage }

  /// Reserves storage for a message of `byteCount` bytes in total.
  @inlinable package mutating func reserveCapacity(_ byteCount: Int) { storage.reserveCapacity(byteCount) }

  /// Writes an integer, a Boolean or an enumeration.
  ///
  /// - Parameters:
  ///   - field: the field number.
  ///   - value: the integer; negative integers in two's complement.
  ///   - isPresent: whether to write 0 too, as a member of a oneof requires and a field with presence may.
  @inlinable package mutating func varint(_ field: Int32, _ value: UInt64, isPresent: Bool = false) {
    guard value != 0 || isPresent else { return }
    tag(field, .varint)
    append(varint: value)
  }

  /// Writes a `fixed64`, or a `double` as its bit pattern.
  @inlinable package mutating func fixed64(_ field: Int32, _ value: UInt64, isPresent: Bool = false) {
    guard value != 0 || isPresent else { return }
    tag(field, .fixed64)
    withUnsafeBytes(of: value.littleEndian) { storage.append(contentsOf: $0) }
  }

  /// Writes a `fixed32`, or a `float` as its bit pattern.
  @inlinable package mutating func fixed32(_ field: Int32, _ value: UInt32, isPresent: Bool = false) {
    guard value != 0 || isPresent else { return }
    tag(field, .fixed32)
    withUnsafeBytes(of: value.littleEndian) { storage.append(contentsOf: $0) }
  }

  /// Writes a string; an empty one only if `isPresent` is set.
  @inlinable package mutating func string(_ field: Int32, _ text: String, isPresent: Bool = false) {
    guard !text.isEmpty || isPresent else { return }
    header(field, byteCount: text.utf8.count)
    storage.append(contentsOf: text.utf8)
  }

  /// Writes bytes or a serialized message, even if it is empty.
  @inlinable package mutating func data(_ field: Int32, _ data: [UInt8]) {
    header(field, byteCount: data.count)
    storage.append(contentsOf: data)
  }

  /// Writes a number as eight bytes in big-endian order.
  @inlinable package mutating func bigEndian(_ field: Int32, _ value: UInt64) {
    header(field, byteCount: 8)
    withUnsafeBytes(of: value.bigEndian) { storage.append(contentsOf: $0) }
  }

  /// Writes a number as sixteen bytes in big-endian order.
  @inlinable package mutating func bigEndian(_ field: Int32, high: UInt64, low: UInt64) {
    header(field, byteCount: 16)
    withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { storage.append(contentsOf: $0) }
  }

  /// Writes the tag and length of a length-delimited field; append its `byteCount` bytes next.
  @inlinable package mutating func header(_ field: Int32, byteCount: Int) {
    tag(field, .lengthDelimited)
    append(varint: UInt64(byteCount))
  }

  /// Appends fields that are already serialized.
  @inlinable package mutating func append(_ fields: [UInt8]) { storage += fields }

  /// Writes a message with the fields that `body` writes.
  ///
  /// The length is inserted before the message after `body` returns.
  @inlinable package mutating func message(_ field: Int32, _ body: (inout WireWriter) -> Void) {
    tag(field, .lengthDelimited)
    let start = storage.count
    storage.append(0)
    body(&self)
    let byteCount = storage.count - start - 1
    guard byteCount > 0x7f else {
      storage[start] = UInt8(byteCount)
      return
    }
    // Most messages are shorter than 128 bytes, so one byte is reserved for the length.
    var length = WireWriter()
    length.append(varint: UInt64(byteCount))
    storage.replaceSubrange(start...start, with: length.storage)
  }

  @inlinable mutating func tag(_ field: Int32, _ type: WireType) {
    append(varint: UInt64(field) << 3 | UInt64(type.rawValue))
  }

  @inlinable mutating func append(varint value: UInt64) {
    var rest = value
    while rest > 0x7f {
      storage.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    storage.append(UInt8(rest))
  }
}
