/// A command-line option that sets a field.
package struct FieldOption: Sendable {
  /// The kind of an option.
  package enum Kind: Sendable, Hashable {
    /// A flag: `--name` and `--no-name`.
    case flag
    case value
    /// A value that may be given any number of times.
    case list
  }

  /// The names of the fields that lead to the value, outermost first.
  package private(set) var path: [String]
  /// The option's name, without dashes.
  package let name: String
  /// The placeholder for the value in usage lines; `nil` for a flag.
  package let valueName: String?
  /// One or more sentences in the imperative mood; the accepted values are appended.
  package let help: String
  /// Whether the option is a flag, takes one value, or may be repeated.
  package let kind: Kind
  /// The accepted values, for help texts; empty for flags.
  package let accepted: String
  private let parse: @Sendable (String, _ field: String) throws(FieldError) -> FieldValue

  init<Value: FieldConvertible>(
    path: [String], name: String, valueName: String?, help: String, rule: FieldRule<Value>
  ) {
    self.path = path
    (self.name, self.valueName, self.help) = (name, valueName, help)
    kind = Value.self == Bool.self ? .flag : Value.self is any RepeatedField.Type ? .list : .value
    accepted =
      if kind == .flag { "" } else if rule.accepted.isEmpty {
        Value.textForm
      } else if rule.accepted.hasPrefix("between") { "\(Value.textForm) \(rule.accepted)" } else { rule.accepted }
    parse = { (text, field) throws(FieldError) in
      let value = try Value(text: text, field: field)
      try rule.check(value, field)
      return value.fieldValue
    }
  }

  /// Parses the option's text and checks the value.
  /// - Throws: an error that names the option, the text and the accepted values.
  package func value(of text: String) throws(FieldError) -> FieldValue {
    try value(of: text, field: "--\(name)")
  }

  /// Parses the option's text and checks the value, for a caller that calls the option `field`.
  /// - Throws: an error that names the field, the text and the accepted values.
  package func value(of text: String, field: String) throws(FieldError) -> FieldValue { try parse(text, field) }

  func nested(in group: String) -> FieldOption {
    var option = self
    option.path.insert(group, at: 0)
    return option
  }
}

/// A field with several elements.
private protocol RepeatedField {}
extension Array: RepeatedField {}
