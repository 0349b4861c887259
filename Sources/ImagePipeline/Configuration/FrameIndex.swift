package import Fields

/// The index of a frame, from 0 on; a negative index counts from the end, where -1 is the last frame.
package struct FrameIndex: Sendable, Hashable {
  /// The index, in the range of a 32-bit number.
  package let value: Int

  /// Creates an index; clamps it to the range of a 32-bit number.
  package init(_ value: Int) { self.value = Int(Int32(clamping: value)) }
}

extension FrameIndex: FieldConvertible {
  /// The index as a 64-bit number in two's complement.
  package var fieldValue: FieldValue { .integer(UInt64(bitPattern: Int64(value))) }

  package init(_ value: FieldValue, field: String) throws(FieldError) {
    guard case .integer(let bits) = value, let index = Int32(exactly: Int64(bitPattern: bits)) else {
      throw FieldError("\(field) must be \(Self.textForm)", field: field)
    }
    self.init(Int(index))
  }

  package init(text: String, field: String) throws(FieldError) {
    guard let index = Int32(text) else { throw Self.unreadable(text, field: field) }
    self.init(Int(index))
  }

  package static var textForm: String { "a whole number" }
}
