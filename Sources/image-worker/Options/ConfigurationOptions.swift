internal import ArgumentParser
internal import Fields
internal import ImagePipeline

/// The fields of a configuration as options, in groups: one for each field of the contract.
struct ConfigurationOptions: ParsableArguments {
  @OptionGroup(title: "Size and position")
  private var placement: TableOptions<PlacementTable>
  @OptionGroup(title: "Format, quality and filters")
  private var delivery: TableOptions<DeliveryTable>
  @OptionGroup(title: "Colors and metadata")
  private var metadata: TableOptions<MetadataTable>
  @OptionGroup(title: "Encoders")
  private var formats: TableOptions<FormatTable>

  var configuration: ProcessingConfiguration {
    get throws {
      let parts = [placement.values, delivery.values, metadata.values, formats.values]
      let values = parts.reduce(into: [:]) { all, part in
        all.merge(part) { first, _ in first }
      }
      return try ConfigurationTable.configuration(values)
    }
  }
}

/// A part of the fields of a configuration as options.
protocol ConfigurationPart: OptionTable {
  static var fields: [FieldOption] { get }
}

enum PlacementTable: ConfigurationPart {
  static let fields = ProcessingConfiguration.placement.flatMap(\.options)
}

enum DeliveryTable: ConfigurationPart {
  static let fields = ProcessingConfiguration.delivery.flatMap(\.options)
}

enum MetadataTable: ConfigurationPart {
  static let fields = ProcessingConfiguration.metadataFields.flatMap(\.options)
}

enum FormatTable: ConfigurationPart {
  static let fields = ProcessingConfiguration.formats.flatMap(\.options)
}

extension ConfigurationPart {
  static var options: [TableOption] {
    fields.map { field in
      let valueName = field.valueName ?? "value"
      let kind: TableOption.Kind =
        switch field.kind {
        case .flag: .flag
        case .value: .value(name: valueName)
        case .list: .list(name: valueName)
        }
      let accepted = field.accepted.isEmpty ? "" : " Accepts \(field.accepted)."
      return TableOption(name: field.name, kind: kind, help: field.help + accepted)
    }
  }

  static func validate(_ values: OptionValues) throws {
    do { _ = try ConfigurationTable.configuration(values) } catch {
      throw ValidationError(ConfigurationTable.optionText(of: error.message, field: error.field))
    }
  }
}

/// All fields of a configuration that options set.
enum ConfigurationTable {
  static let fields = PlacementTable.fields + DeliveryTable.fields + MetadataTable.fields + FormatTable.fields

  /// The configuration that the options make up; fields without an option are not set.
  /// - Throws: an error that names the option, its value and what is accepted.
  static func configuration(_ values: OptionValues) throws(FieldError) -> ProcessingConfiguration {
    var root: [String: FieldValue] = [:]
    for field in fields {
      guard let texts = values[field.name] else { continue }
      var elements: [FieldValue] = []
      for text in texts {
        let value = try field.value(of: text)
        if field.kind == .list, case .list(let parts) = value { elements += parts } else { elements.append(value) }
      }
      guard let last = elements.last else { continue }
      set(field.kind == .list ? .list(elements) : last, at: field.path[...], in: &root)
    }
    return try ProcessingConfiguration(.record(root), field: "")
  }

  /// Returns a text with fields, and the names of the contract behind them, spelled as options.
  static func optionText(of text: String) -> String {
    // Longer names first, as some contain others.
    let fields = fields.sorted { $0.path.joined().count > $1.path.joined().count }
    let options = fields.reduce(text) { text, field in
      let name = field.path.joined(separator: ".")
      return name.contains("_") || name.contains(".")
        ? text.split(separator: name, omittingEmptySubsequences: false).joined(separator: "--\(field.name)")
        : text
    }
    return options.replacing(/(--[a-z-]+) ([A-Z][A-Z_]+)/) { match in
      "\(match.1) \(match.2.lowercased().replacing("_", with: "-"))"
    }
  }

  /// Returns the message of an error with fields spelled as options, and the option of its field named first if the
  /// message does not name it.
  static func optionText(of message: String, field: String?) -> String {
    let text = optionText(of: message)
    let name = field?.prefix { $0 != "." && $0 != "[" }
    guard let name, let option = fields.first(where: { $0.path == [String(name)] }), !text.contains("--\(option.name)")
    else { return text }
    return "--\(option.name): \(text)"
  }

  private static func set(_ value: FieldValue, at path: ArraySlice<String>, in record: inout [String: FieldValue]) {
    guard let name = path.first else { return }
    guard path.count > 1 else { return record[name] = value }
    var inner: [String: FieldValue] = [:]
    if case .record(let fields)? = record[name] { inner = fields }
    set(value, at: path.dropFirst(), in: &inner)
    record[name] = .record(inner)
  }
}

extension PipelineError {
  /// Whether the request is wrong, not the image or the machine.
  var isOfRequest: Bool { [.invalidField, .unservedField, .unknownPreset].contains(code) }

  /// The message with fields spelled as options, as in `--max-width` for `max_width`.
  var optionMessage: String {
    let text = ConfigurationTable.optionText(of: message, field: field)
    return limit?.name == "image_memory_limit" ? text + "; raise --image-memory-limit-mib" : text
  }
}

extension Warning {
  /// The warning with fields spelled as options in its message.
  var withOptions: Warning {
    var warning = self
    warning.message = ConfigurationTable.optionText(of: message)
    return warning
  }
}
