/// The name and the help of a field's option.
package struct OptionText: Sendable {
  /// Without its dashes.
  package let name: String
  /// Stands for the value in usage lines.
  package let valueName: String?
  /// One or more sentences in the imperative mood; the accepted values are added.
  package let help: String

  package init(_ name: String, _ valueName: String, _ help: String) {
    (self.name, self.valueName, self.help) = (name, valueName, help)
  }

  /// The text of a flag.
  package init(_ name: String, _ help: String) {
    (self.name, valueName, self.help) = (name, nil, help)
  }
}

/// An option of a command line that sets a field.
package struct FieldOption: Sendable {
  /// The kinds of options.
  package enum Kind: Sendable, Hashable {
    /// `--name` and `--no-name`.
    case flag
    case value
    /// A value, any number of times.
    case list
  }

  /// Names of fields, the outermost first.
  package private(set) var path: [String]
  package let text: OptionText
  package let kind: Kind
  /// What is accepted; empty for flags.
  package let accepted: String
  private let parse: @Sendable (String, _ field: String) throws(FieldError) -> FieldValue

  init<Value: FieldConvertible>(path: [String], text: OptionText, rule: FieldRule<Value>) {
    self.path = path
    self.text = text
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

  /// - Throws: an error that names the option, the text and what is accepted.
  package func value(of text: String) throws(FieldError) -> FieldValue { try parse(text, "--\(self.text.name)") }

  func nested(in group: String) -> FieldOption {
    var option = self
    option.path.insert(group, at: 0)
    return option
  }
}

/// A field of several elements.
private protocol RepeatedField {}
extension Array: RepeatedField {}
