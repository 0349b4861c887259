package import Fields

/// One filter of a chain, as a caller asks for it.
package struct Filter: Sendable, Hashable {
  /// What it is called, as in `sepia`.
  package var name: String
  /// 0, the image as it is, to 1, the filter in full.
  package var intensity: Double
  /// The filter's own parameters by name; those that are not given have their defaults.
  package var parameters: [String: Double]

  package init(name: String, intensity: Double = 1, parameters: [String: Double] = [:]) {
    self.name = name
    self.intensity = intensity
    self.parameters = parameters
  }

  /// The most filters that one image may pass.
  package static let maxChainCount = 32

  /// Checks a chain against what exists.
  /// - Throws: `invalidField` naming the first name, intensity or parameter that does not exist or is out of range, as
  ///   in `filters[1].parameters["radius"]`, with a message that lists what exists.
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
    guard let kind = FilterKind(rawValue: name) else {
      let names = FilterKind.allCases.map(\.rawValue).joined(separator: ", ")
      throw PipelineError(
        .invalidField, "\(path).name is \(Self.quoted(name)); it must be one of: \(names)", field: "\(path).name")
    }
    guard (0...1).contains(intensity) else {
      throw PipelineError(
        .invalidField, "\(path).intensity is \(intensity); it must be between 0 and 1", field: "\(path).intensity")
    }
    var settings = FilterSettings(kind: kind, intensity: intensity)
    // In a fixed order, so that the same request always gets the same error.
    for (name, value) in parameters.sorted(by: { $0.key < $1.key }) {
      let field = "\(path).parameters[\(Self.quoted(name))]"
      guard let parameter = kind.parameters.first(where: { $0.name == name }) else {
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

  /// A caller's text as it may stand in a message: not too long, and on one line.
  private static func quoted(_ text: String) -> String { String(reflecting: String(text.prefix(64))) }
}

/// A filter whose name, intensity and parameters were checked.
struct FilterSettings: Sendable, Hashable {
  let kind: FilterKind
  let intensity: Double
  /// Those that were given.
  var values: [String: Double] = [:]

  init(kind: FilterKind, intensity: Double) {
    self.kind = kind
    self.intensity = intensity
  }

  /// A parameter's value, or its default.
  ///
  /// The name is one of the kind's; any other traps.
  subscript(name: String) -> Double {
    guard let parameter = kind.parameters.first(where: { $0.name == name }) else {
      preconditionFailure("\(kind.rawValue) has no parameter \(name)")
    }
    return values[name] ?? parameter.defaultValue
  }
}

extension Filter: FieldRecord {
  /// A filter without a name, which does nothing: what a message without values stands for.
  package init() { self.init(name: "", intensity: 0) }

  /// Names and ranges depend on the kind of filter: see `resolve`.
  package static let fields: [Field<Filter>] = [
    Field("name", \.name), Field("intensity", \.intensity), Field("parameters", \.parameters),
  ]

  /// A filter as a command line has it: `sepia`, `sepia=0.5`, or `blur=1,radius=4`.
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
      throw FieldError("\(field) \"\(text)\": \(error.message)", field: field)
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
