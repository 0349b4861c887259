package import Fields

/// A requested filter of a chain.
package struct Filter: Sendable, Hashable {
  /// The name of the filter, such as `sepia`.
  package var name: String
  /// The strength of the filter, from 0 (unchanged) to 1 (full effect).
  package var intensity: Double
  /// The parameters of the filter by name; missing ones have their default values.
  package var parameters: [String: Double]

  package init(name: String, intensity: Double = 1, parameters: [String: Double] = [:]) {
    self.name = name
    self.intensity = intensity
    self.parameters = parameters
  }

  /// The maximum number of filters in a chain.
  package static let maxChainCount = 32

  /// Checks the names, intensities and parameters of a chain.
  /// - Throws: `invalidField` with the path of the first value that is unknown or out of range, such as
  ///   `filters[1].parameters["radius"]`, and a message that lists the accepted values.
  static func resolve(_ filters: [Filter]) throws(PipelineError) -> [FilterSettings] {
    guard filters.count <= maxChainCount else {
      throw PipelineError(
        .invalidField, "filters has \(filters.count) entries; at most \(maxChainCount) are accepted",
        field: "filters")
    }
    var settings: [FilterSettings] = []
    for (index, filter) in filters.enumerated() { settings.append(try filter.resolved(path: "filters[\(index)]")) }
    return settings
  }

  private func resolved(path: String) throws(PipelineError) -> FilterSettings {
    guard let kind = name.asName.flatMap(FilterKind.init) else {
      let names = FilterKind.allCases.map(\.rawValue)
      throw PipelineError(
        .invalidField,
        "\(path).name is \(Self.quoted(name)); it must be one of: \(names.joined(separator: ", "))"
          + NearestName.question(name.beginning, in: names), field: "\(path).name")
    }
    guard (0...1).contains(intensity) else {
      throw PipelineError(
        .invalidField, "\(path).intensity is \(intensity); it must be between 0 and 1", field: "\(path).intensity")
    }
    var settings = FilterSettings(kind: kind, intensity: intensity)
    // The order is fixed, so that the same request always produces the same error.
    for (name, value) in parameters.sorted(by: { $0.key < $1.key }) {
      let field = "\(path).parameters[\(Self.quoted(name))]"
      guard let parameter = kind.parameters.first(where: { $0.name == name.asName }) else {
        let names = kind.parameters.map(\.name)
        let known = names.isEmpty ? "it has no parameters" : "it accepts: \(names.joined(separator: ", "))"
        throw PipelineError(.invalidField, "\(field) is not a parameter of \(kind.rawValue); \(known)", field: field)
      }
      guard parameter.allows(value) else {
        throw PipelineError(
          .invalidField, "\(field) is \(value); it must be \(parameter.rangeDescription)", field: field)
      }
      settings.values[name] = value
    }
    return settings
  }

  /// Returns a caller's text, shortened and escaped to a single line for use in a message.
  private static func quoted(_ text: String) -> String { String(reflecting: text.beginning) }
}

/// A filter whose name, intensity and parameters have been checked.
struct FilterSettings: Sendable, Hashable {
  let kind: FilterKind
  let intensity: Double
  /// The parameters that were specified, by name.
  var values: [String: Double] = [:]

  /// The value of a parameter, or its default.
  ///
  /// The name must be that of a parameter of the kind; any other name traps.
  subscript(name: String) -> Double {
    guard let parameter = kind.parameters.first(where: { $0.name == name }) else {
      preconditionFailure("\(kind.rawValue) has no parameter \(name)")
    }
    return values[name] ?? parameter.defaultValue
  }
}

extension Filter: FieldRecord {
  /// Creates a filter without a name, the filter of a message without values.
  package init() { self.init(name: "", intensity: 0) }

  /// The fields of a filter; names and ranges depend on the kind of filter and are checked by `resolve`.
  package static let fields: [Field<Filter>] = [
    Field("name", \.name), Field("intensity", \.intensity), Field("parameters", \.parameters),
  ]

  /// Parses a filter in command-line notation: `sepia`, `sepia=0.5`, or `blur=1,radius=4`.
  package init(text: String, field: String) throws(FieldError) {
    var parts = text.split(separator: ",", omittingEmptySubsequences: false)[...]
    let (name, intensity) = try Self.pair(parts.removeFirst(), in: text, field)
    self.init(name: name, intensity: intensity ?? 1)
    for part in parts {
      let (parameter, value) = try Self.pair(part, in: text, field)
      guard let value, !parameter.isEmpty else {
        throw FieldError(
          "\(field) \"\(text)\": \"\(part)\" is not a parameter and its value, as in radius=4", field: field)
      }
      guard parameters.updateValue(value, forKey: parameter) == nil else {
        throw FieldError("\(field) \"\(text)\" has the parameter \"\(parameter)\" twice", field: field)
      }
    }
    do throws(PipelineError) { _ = try Self.resolve([self]) } catch {
      // As an option it has no place in a list.
      let message = error.message.split(separator: "filters[0].", omittingEmptySubsequences: false).joined()
      throw FieldError("\(field) \"\(text)\": \(message)", field: field)
    }
  }

  package static var textForm: String { "a filter as name, name=intensity or name=intensity,parameter=value" }

  private static func pair(
    _ text: Substring, in argument: String, _ field: String
  ) throws(FieldError) -> (name: String, value: Double?) {
    guard let sign = text.firstIndex(of: "=") else { return (String(text), nil) }
    let number = text[text.index(after: sign)...]
    guard let value = Double(number) else {
      throw FieldError("\(field) \"\(argument)\": \"\(number)\" is not a number", field: field)
    }
    return (String(text[..<sign]), value)
  }
}
