internal import Fields
internal import ImagePipeline
internal import SwiftProtobuf
internal import WorkerProtocol

/// The configuration of the contract, as the page needs it to make a control for each field.
///
/// It follows from the contract's descriptors, the rows of the fields and the list of filters, so that a new field needs
/// no change here.
struct ContractDescription: Sendable, Encodable {
  struct Field: Sendable, Encodable {
    var name: String
    /// The type as the contract spells it, such as `uint32`, or `message`, `enum` or `map`.
    var type: String
    /// The name of the message or enum; empty for other types.
    var typeName: String
    var isRepeated: Bool
    /// Whether the field is `optional`; a message with such fields is merged with the preset's, others replace it.
    var isOptional: Bool
    var comment: String
  }

  /// A value of an enum.
  struct Choice: Sendable, Encodable {
    var name: String
    /// The short name, as in presets and on the command line.
    var word: String
    var comment: String
  }

  /// The option of a field.
  struct Option: Sendable, Encodable {
    var name: String
    /// `flag`, `value` or `list`.
    var kind: String
    /// The accepted values, in words.
    var accepted: String
    /// The same in numbers, if there are any.
    var minimum: Double?
    var maximum: Double?
    /// The only accepted numbers; empty for a range.
    var choices: [Double] = []
  }

  struct Filter: Sendable, Encodable {
    var name: String
    var summary: String
    var parameters: [Parameter]
  }

  /// A parameter of a filter.
  struct Parameter: Sendable, Encodable {
    var name: String
    var summary: String
    var minimum: Double
    var maximum: Double
    var defaultValue: Double
    var isWhole: Bool
  }

  /// The gRPC listener.
  struct Worker: Sendable, Encodable {
    var address = ""
    var isSecure = false
  }

  /// Limits in bytes, and of uploads.
  struct Limits: Sendable, Encodable {
    var imageMemory = 0
    var memory = 0
    var message = 0
    var uploads = 0
    var uploadCount = 0
    var uploadSeconds = 0
  }

  /// The fields of each message by the message's name, in the contract's order.
  var messages: [String: [Field]] = [:]
  /// The values of each enum by the enum's name, without the one that stands for none.
  var enums: [String: [Choice]] = [:]
  /// The options by the path of their field, as in `jpeg.progressive`.
  var options: [String: Option] = [:]
  var filters: [Filter] = []
  var maxFilterCount = ImagePipeline.Filter.maxChainCount
  var worker = Worker()
  var limits = Limits()
  var takesOnlyPresets = false

  /// The message from which everything else is reached.
  private static let file = "imageworker/v1/image_worker.proto"

  /// The description of the contract that this worker serves.
  static let shared: ContractDescription = {
    do { return try ContractDescription() } catch {
      preconditionFailure("the embedded descriptor set is damaged: \(error)")
    }
  }()

  /// - Throws: when the bytes are not a `FileDescriptorSet`.
  init(serialized: [UInt8] = DescriptorSet.serialized) throws {
    for file in try Google_Protobuf_FileDescriptorSet(serializedBytes: serialized).file where file.name == Self.file {
      let comments = Comments(file)
      for (index, message) in file.messageType.enumerated() {
        messages[message.name] = message.field.enumerated().map { number, field in
          Field(field, in: message, comment: comments[4, Int32(index), 2, Int32(number)])
        }
      }
      for (index, type) in file.enumType.enumerated() {
        let prefix = type.value.first.map { String($0.name.dropLast("UNSPECIFIED".count)) } ?? ""
        enums[type.name] = type.value.enumerated().filter { $0.element.number != 0 }.map { number, value in
          Choice(
            name: value.name, word: value.name.dropFirst(prefix.count).lowercased(),
            comment: comments[5, Int32(index), 2, Int32(number)])
        }
      }
    }
    for option in ProcessingConfiguration.fields.flatMap(\.options) {
      options[option.path.joined(separator: ".")] = Option(option)
    }
    filters = FilterKind.allCases.map(Filter.init)
  }

  /// The comments before the declarations of a file, by the path of the declaration.
  private struct Comments {
    private var texts: [[Int32]: String] = [:]

    init(_ file: Google_Protobuf_FileDescriptorProto) {
      for location in file.sourceCodeInfo.location where location.hasLeadingComments {
        let lines = location.leadingComments.split(separator: "\n", omittingEmptySubsequences: false)
        texts[location.path] = lines.map { String($0.drop { $0 == " " }) }.joined(separator: "\n")
      }
    }

    subscript(_ path: Int32...) -> String {
      guard let text = texts[path] else { return "" }
      return String(text.reversed().drop { $0 == "\n" }.reversed())
    }
  }
}

extension ContractDescription.Field {
  fileprivate init(
    _ field: Google_Protobuf_FieldDescriptorProto, in message: Google_Protobuf_DescriptorProto, comment: String
  ) {
    let typeName = String(field.typeName.split(separator: ".").last ?? "")
    let isMap = message.nestedType.contains { $0.name == typeName && $0.options.mapEntry }
    self.init(
      name: field.name, type: isMap ? "map" : field.type == .fixed64 ? "uint64" : "\(field.type)", typeName: typeName,
      isRepeated: field.label == .repeated && !isMap, isOptional: field.proto3Optional, comment: comment)
  }
}

extension ContractDescription.Option {
  fileprivate init(_ option: FieldOption) {
    self.init(name: option.name, kind: "\(option.kind)", accepted: option.accepted)
    let words = option.accepted.split(separator: " ").map { $0.split(separator: ",").first ?? "" }
    if let start = words.firstIndex(of: "between"), words.count > start + 3 {
      // As in "0, or between 2 and 256".
      let numbers = (words[..<start] + words[(start + 1)...(start + 1)]).compactMap { Double($0) }
      (minimum, maximum) = (numbers.min(), Double(words[start + 3]))
    } else if let start = words.lastIndex(of: "least"), words.count > start + 1 {
      minimum = Double(words[start + 1])
    } else {
      let numbers = words.filter { $0 != "or" }.map { Double($0) }
      if numbers.count > 1, numbers.allSatisfy({ $0 != nil }) { choices = numbers.compactMap { $0 } }
    }
  }
}

extension ContractDescription.Filter {
  fileprivate init(_ kind: FilterKind) {
    self.init(
      name: kind.rawValue, summary: kind.summary,
      parameters: kind.parameters.map {
        .init(
          name: $0.name, summary: $0.summary, minimum: $0.range.lowerBound, maximum: $0.range.upperBound,
          defaultValue: $0.defaultValue, isWhole: $0.isWhole)
      })
  }
}
