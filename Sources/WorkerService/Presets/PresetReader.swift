internal import Fields
internal import ImagePipeline
internal import ProtobufWire
internal import SwiftProtobuf
internal import WorkerProtocol
internal import Yams

/// Reads one preset from its YAML, by the descriptors of the wire contract.
struct PresetReader {
  private let schema: ContractSchema
  /// Where the fields that were read stand in the file, as in `filters[0].name`.
  private var lines: [String: Int] = [:]
  /// The preset, as in `presets.card`.
  private var root = ""

  private static let configurationType = ".imageworker.v1.ProcessingConfiguration"
  private static let colorType = ".imageworker.v1.Color"
  private static let filterType = ".imageworker.v1.Filter"
  private static let maxNameByteCount = 64

  init(schema: ContractSchema) {
    self.schema = schema
  }

  /// - Throws: `PresetProblem`.
  mutating func preset(key: Node, body: Node) throws -> Preset {
    let name = key.string ?? ""
    root = "presets.\(name)"
    guard (1...Self.maxNameByteCount).contains(name.utf8.count) else {
      throw PresetProblem(
        "a preset's name must have between 1 and \(Self.maxNameByteCount) bytes", field: root, line: key.mark?.line)
    }
    var description = ""
    var fields: [(Node, Node)] = []
    for (fieldKey, value) in try Self.mapping(body, path: root) {
      if fieldKey.string == "description" {
        description = try text(value, path: "description")
      } else {
        fields.append((fieldKey, value))
      }
    }
    let bytes = try message(fields, type: Self.configurationType, path: "", extraKeys: ["description"])
    do {
      let wire = try Imageworker_V1_ProcessingConfiguration(serializedBytes: bytes)
      let configuration = try ProcessingConfiguration(wire)
      try configuration.validate()
      return Preset(name: name, description: description, configuration: configuration)
    } catch let error as PipelineError {
      throw problem(error.message, path: error.field ?? "", line: line(of: error.field ?? "") ?? key.mark?.line)
    }
  }

  /// - Throws: `PresetProblem` when the node is no mapping.
  static func mapping(_ node: Node, path: String) throws -> [(Node, Node)] {
    guard let mapping = node.mapping else {
      throw PresetProblem("must be a mapping of names to values", field: path, line: node.mark?.line)
    }
    return mapping.map { ($0.key, $0.value) }
  }

  /// The line of a field, or of the nearest one around it.
  private func line(of path: String) -> Int? {
    var rest = Substring(path)
    while !rest.isEmpty {
      if let line = lines[String(rest)] { return line }
      guard let end = rest.lastIndex(where: { $0 == "." || $0 == "[" }) else { return nil }
      rest = rest[..<end]
    }
    return nil
  }

  private func problem(_ message: String, path: String, line: Int?) -> PresetProblem {
    PresetProblem(message, field: path.isEmpty ? root : "\(root).\(path)", line: line)
  }

  /// - `path`: of the message, empty for the configuration itself.
  /// - `extraKeys`: keys beside the message's own, for the error that lists them.
  private mutating func message(
    _ pairs: [(Node, Node)], type: String, path: String, extraKeys: [String] = []
  ) throws -> [UInt8] {
    let descriptor = schema.message(type)
    var wire = WireWriter()
    for (key, value) in pairs {
      let name = key.string ?? ""
      let fieldPath = path.isEmpty ? name : "\(path).\(name)"
      guard let field = descriptor.field.first(where: { $0.name == name }) else {
        let known = extraKeys + descriptor.field.map(\.name)
        throw problem(
          "is unknown; it must be one of: \(known.joined(separator: ", "))" + NearestName.question(name, in: known),
          path: fieldPath, line: key.mark?.line)
      }
      lines[fieldPath] = key.mark?.line
      try append(value, field, path: fieldPath, to: &wire)
    }
    if type == Self.filterType, let intensity = descriptor.field.first(where: { $0.name == "intensity" }),
      !pairs.contains(where: { $0.0.string == intensity.name })
    {
      // As on the command line: a filter that stands there is meant to be seen.
      wire.fixed64(intensity.number, 1.0.bitPattern)
    }
    return wire.bytes
  }

  private mutating func append(
    _ node: Node, _ field: ContractSchema.Field, path: String, to wire: inout WireWriter
  ) throws {
    if schema.isMap(field) {
      let entry = schema.message(field.typeName)
      for (key, value) in try Self.mapping(node, path: "\(root).\(path)") {
        let entryPath = "\(path)[\(String(reflecting: key.string ?? ""))]"
        lines[entryPath] = key.mark?.line
        var entryWire = WireWriter()
        for (part, partField) in zip([key, value], entry.field) {
          try appendOne(part, partField, path: entryPath, to: &entryWire)
        }
        wire.data(field.number, entryWire.bytes)
      }
    } else if field.label == .repeated {
      guard let sequence = node.sequence else {
        throw problem("must be a list", path: path, line: node.mark?.line)
      }
      for (index, element) in sequence.enumerated() {
        let elementPath = "\(path)[\(index)]"
        lines[elementPath] = element.mark?.line
        try appendOne(element, field, path: elementPath, to: &wire)
      }
    } else {
      try appendOne(node, field, path: path, to: &wire)
    }
  }

  private mutating func appendOne(
    _ node: Node, _ field: ContractSchema.Field, path: String, to wire: inout WireWriter
  ) throws {
    switch field.type {
    case .message where field.typeName == Self.colorType && node.mapping == nil:
      wire.data(field.number, try color(node, path: path))
    case .message:
      let pairs = try Self.mapping(node, path: "\(root).\(path)")
      wire.data(field.number, try message(pairs, type: field.typeName, path: path))
    case .enum: wire.varint(field.number, try choice(node, field, path: path), isPresent: true)
    case .string: wire.string(field.number, try text(node, path: path), isPresent: true)
    case .double:
      guard Self.isNumber(node), let value = node.float else {
        throw problem("must be a number", path: path, line: node.mark?.line)
      }
      wire.fixed64(field.number, value.bitPattern, isPresent: true)
    case .bool:
      guard node.tag == Tag(.bool), let value = node.bool else {
        throw problem("must be true or false", path: path, line: node.mark?.line)
      }
      wire.varint(field.number, value ? 1 : 0, isPresent: true)
    case .uint32, .uint64:
      let limit = field.type == .uint32 ? UInt64(UInt32.max) : UInt64.max
      guard Self.isNumber(node), let value = node.scalar.flatMap(UInt64.construct), value <= limit else {
        throw problem("must be a whole number between 0 and \(limit)", path: path, line: node.mark?.line)
      }
      wire.varint(field.number, value, isPresent: true)
    case .int32:
      guard Self.isNumber(node), let value = node.scalar.flatMap(Int32.construct) else {
        throw problem(
          "must be a whole number between \(Int32.min) and \(Int32.max)", path: path, line: node.mark?.line)
      }
      wire.varint(field.number, UInt64(bitPattern: Int64(value)), isPresent: true)
    default:
      throw problem("cannot be set in a file", path: path, line: node.mark?.line)
    }
  }

  private func choice(_ node: Node, _ field: ContractSchema.Field, path: String) throws -> UInt64 {
    let choices = schema.choices(of: field.typeName)
    guard let chosen = choices.first(where: { $0.name == node.scalar?.string }) else {
      let known = choices.map(\.name).joined(separator: ", ")
      throw problem("must be one of: \(known)", path: path, line: node.mark?.line)
    }
    return UInt64(chosen.number)
  }

  private func color(_ node: Node, path: String) throws -> [UInt8] {
    guard let color = try? Color(text: node.scalar?.string ?? "", field: path) else {
      throw problem(
        "must be a color as \"#rrggbb\" or \"#rgb\", in quotes, or a mapping of red, green and blue", path: path,
        line: node.mark?.line)
    }
    return try Imageworker_V1_Color(color).serializedBytes()
  }

  private func text(_ node: Node, path: String) throws -> String {
    guard let scalar = node.scalar else { throw problem("must be text", path: path, line: node.mark?.line) }
    return scalar.string
  }

  private static func isNumber(_ node: Node) -> Bool { [Tag(.int), Tag(.float)].contains(node.tag) }
}
