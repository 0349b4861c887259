internal import Fields
internal import FoundationEssentials
internal import ImagePipeline
internal import SwiftProtobuf
internal import WorkerProtocol

/// Reads a message's set fields by their names in the contract, of whatever types they are.
///
/// Fields that the contract does not have are ignored. An enum's zero stands for "not set".
struct MessageReader: Visitor {
  private let fields: [Int: ContractSchema.FieldName]
  /// The message's, empty for the outermost one.
  private let path: String
  private var values: [String: FieldValue] = [:]

  private init(type: String, path: String) {
    fields = ContractSchema.shared.namesByNumber[type] ?? [:]
    self.path = path
  }

  /// The message as a record.
  /// - Throws: `invalidField` for a choice that the contract does not have.
  static func value<Wire: Message>(of message: Wire, path: String = "") throws(PipelineError) -> FieldValue {
    var reader = MessageReader(type: Wire.protoMessageName, path: path)
    do { try message.traverse(visitor: &reader) } catch let error as PipelineError { throw error } catch {
      throw PipelineError(.internalDefect, "a message cannot be parsed: \(error)")
    }
    return .record(reader.values)
  }

  private mutating func set(_ number: Int, _ value: FieldValue) {
    if let name = fields[number]?.name { values[name] = value }
  }

  private func path(of number: Int) -> String {
    let name = fields[number]?.name ?? "\(number)"
    return path.isEmpty ? name : "\(path).\(name)"
  }

  mutating func visitSingularDoubleField(value: Double, fieldNumber: Int) { set(fieldNumber, .number(value)) }

  mutating func visitSingularInt64Field(value: Int64, fieldNumber: Int) {
    set(fieldNumber, .integer(UInt64(bitPattern: value)))
  }

  mutating func visitSingularUInt64Field(value: UInt64, fieldNumber: Int) { set(fieldNumber, .integer(value)) }

  mutating func visitSingularBoolField(value: Bool, fieldNumber: Int) { set(fieldNumber, .flag(value)) }

  mutating func visitSingularStringField(value: String, fieldNumber: Int) { set(fieldNumber, .word(value)) }

  mutating func visitSingularBytesField(value: Data, fieldNumber: Int) {}

  mutating func visitSingularEnumField<E: SwiftProtobuf.Enum>(value: E, fieldNumber: Int) throws {
    guard value.rawValue != 0, let field = fields[fieldNumber] else { return }
    let choices = ContractSchema.shared.choices(of: field.typeName)
    guard let choice = choices.first(where: { $0.number == Int32(truncatingIfNeeded: value.rawValue) }) else {
      let name = path(of: fieldNumber)
      let accepted = choices.map { "\($0.number) (\($0.name.uppercased()))" }.joined(separator: ", ")
      throw PipelineError(
        .invalidField, "\(name) is \(value.rawValue); it must be one of: \(accepted)", field: name)
    }
    set(fieldNumber, .word(choice.name))
  }

  mutating func visitSingularMessageField<M: Message>(value: M, fieldNumber: Int) throws {
    set(fieldNumber, try Self.value(of: value, path: path(of: fieldNumber)))
  }

  mutating func visitRepeatedMessageField<M: Message>(value: [M], fieldNumber: Int) throws {
    let field = path(of: fieldNumber)
    let elements = try value.enumerated().map { try Self.value(of: $1, path: "\(field)[\($0)]") }
    set(fieldNumber, .list(elements))
  }

  mutating func visitRepeatedUInt32Field(value: [UInt32], fieldNumber: Int) {
    set(fieldNumber, value.map(Int.init).fieldValue)
  }

  mutating func visitRepeatedDoubleField(value: [Double], fieldNumber: Int) { set(fieldNumber, value.fieldValue) }

  mutating func visitMapField<Key, Value: MapValueType>(
    fieldType: _ProtobufMap<Key, Value>.Type, value: _ProtobufMap<Key, Value>.BaseType, fieldNumber: Int
  ) {
    guard let entries = value as? [String: Double] else { return }
    set(fieldNumber, entries.fieldValue)
  }

  mutating func visitMapField<Key, Value>(
    fieldType: _ProtobufEnumMap<Key, Value>.Type, value: _ProtobufEnumMap<Key, Value>.BaseType, fieldNumber: Int
  ) {}

  mutating func visitMapField<Key, Value>(
    fieldType: _ProtobufMessageMap<Key, Value>.Type, value: _ProtobufMessageMap<Key, Value>.BaseType, fieldNumber: Int
  ) {}

  mutating func visitUnknown(bytes: Data) {}
}
