internal import SwiftProtobuf
internal import WorkerProtocol

/// The messages and enums of the wire contract, by their full names with a leading dot, as descriptors refer to them.
///
/// What reads text by it takes every field of the contract, without being told of new ones.
struct ContractSchema: Sendable {
  typealias Message = Google_Protobuf_DescriptorProto
  typealias Field = Google_Protobuf_FieldDescriptorProto

  /// The part of a field's descriptor that a reader of messages needs; descriptors are slow to copy.
  struct FieldName: Sendable {
    let name: String
    /// The full name of its message or enum, with a leading dot; empty for other types.
    let typeName: String
  }

  private var messages: [String: Message] = [:]
  /// The names of the fields of messages by their numbers; the keys have no leading dot.
  private(set) var namesByNumber: [String: [Int: FieldName]] = [:]
  private var choicesByEnum: [String: [(name: String, number: Int32)]] = [:]

  /// The contract that this worker serves.
  static let shared: ContractSchema = {
    do { return try ContractSchema() } catch { preconditionFailure("the embedded descriptor set is damaged: \(error)") }
  }()

  /// - Throws: when the bytes are not a `FileDescriptorSet`.
  init(serialized: [UInt8] = DescriptorSet.serialized) throws {
    for file in try Google_Protobuf_FileDescriptorSet(serializedBytes: serialized).file {
      let scope = file.package.isEmpty ? "" : ".\(file.package)"
      for value in file.enumType { add(value, scope: scope) }
      for message in file.messageType { add(message, scope: scope) }
    }
  }

  private mutating func add(_ message: Message, scope: String) {
    let name = "\(scope).\(message.name)"
    messages[name] = message
    namesByNumber[String(name.dropFirst())] = Dictionary(
      uniqueKeysWithValues: message.field.map { (Int($0.number), FieldName(name: $0.name, typeName: $0.typeName)) })
    for value in message.enumType { add(value, scope: name) }
    for nested in message.nestedType { add(nested, scope: name) }
  }

  /// The message of this name; empty when there is none.
  func message(_ name: String) -> Message { messages[name] ?? Message() }

  /// Whether the field is a map: entries of a key, field 1, and a value, field 2.
  func isMap(_ field: Field) -> Bool {
    field.type == .message && message(field.typeName).options.mapEntry
  }

  /// The values of an enum by their short names: `fit` for `RESIZE_MODE_FIT`; in the contract's order, without the
  /// value that stands for none.
  func choices(of enumName: String) -> [(name: String, number: Int32)] {
    choicesByEnum[enumName] ?? []
  }

  private mutating func add(_ type: Google_Protobuf_EnumDescriptorProto, scope: String) {
    let prefix = type.value.first.map { String($0.name.dropLast("UNSPECIFIED".count)) } ?? ""
    choicesByEnum["\(scope).\(type.name)"] = type.value.filter { $0.number != 0 }.map {
      (String($0.name.dropFirst(prefix.count)).lowercased(), $0.number)
    }
  }
}
