internal import Fields
internal import ProtobufWire
internal import SwiftProtobuf
internal import WorkerProtocol

/// Writes a record as a message of the contract, by the names of its fields.
enum MessageWriter {
  /// The serialized message, its fields in the contract's order.
  ///
  /// A value that the contract has no field for is left out.
  /// - `type`: the message's full name.
  static func bytes(of record: FieldValue, type: String) -> [UInt8] {
    var wire = WireWriter()
    guard case .record(let values) = record else { return [] }
    for field in ContractSchema.shared.message(".\(type)").field {
      if let value = values[field.name] { append(value, field, to: &wire) }
    }
    return wire.bytes
  }

  private static func append(_ value: FieldValue, _ field: ContractSchema.Field, to wire: inout WireWriter) {
    let number = field.number
    switch value {
    case .flag(let flag): wire.varint(number, flag ? 1 : 0, isPresent: true)
    case .integer(let integer): wire.varint(number, integer, isPresent: true)
    case .number(let value): wire.fixed64(number, value.bitPattern, isPresent: true)
    case .word(let text) where field.type == .enum:
      let choices = ContractSchema.shared.choices(of: field.typeName)
      if let choice = choices.first(where: { $0.name == text }) {
        wire.varint(number, UInt64(choice.number), isPresent: true)
      }
    case .word(let text): wire.string(number, text, isPresent: true)
    case .record: wire.data(number, bytes(of: value, type: String(field.typeName.dropFirst())))
    case .list(let elements): for element in elements { append(element, field, to: &wire) }
    case .map(let entries):
      for (key, value) in entries.sorted(by: { $0.key < $1.key }) {
        let entry = FieldValue.record(["key": .word(key), "value": value])
        wire.data(number, bytes(of: entry, type: String(field.typeName.dropFirst())))
      }
    }
  }
}
