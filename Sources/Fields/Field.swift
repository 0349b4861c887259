/// The description of one field of a record.
///
/// Reading, writing, merging and validating a record, and its command-line options, are all derived from these
/// descriptions.
package struct Field<Record>: Sendable {
  /// The field's name in the wire contract.
  package let name: String
  /// The field's command-line options, or those of its nested fields.
  package let options: [FieldOption]
  /// Returns the value; `nil` if the field is not set.
  let value: @Sendable (Record) -> FieldValue?
  /// Sets the field after checking the value against its rule; a group keeps its fields that the value does not set.
  let read: @Sendable (inout Record, FieldValue, _ path: String) throws(FieldError) -> Void
  /// Sets the field to what a text stands for, without checking it against the rule.
  let parse: @Sendable (inout Record, String, _ path: String) throws(FieldError) -> Void
  /// Copies the value of the other record if it has one.
  let override: @Sendable (inout Record, Record) -> Void
  /// Checks the value against its rule.
  let validate: @Sendable (Record, _ path: String) throws(FieldError) -> Void

  /// The field's name with dashes.
  package var optionName: String { name.replacing("_", with: "-") }

  /// Describes an optional field.
  /// - `rule`: the rule that the value must satisfy.
  /// - `option`: the name of the field's command-line option, without dashes; `nil` for the field's name with dashes.
  /// - `valueName`: the placeholder for the value in usage lines; `nil` for a flag.
  /// - `help`: one or more sentences about the option in the imperative mood; `nil` if another field's option sets the
  ///   field.
  package init<Value: FieldConvertible>(
    _ name: String, _ path: any WritableKeyPath<Record, Value?> & Sendable, _ rule: FieldRule<Value> = .any,
    option: String? = nil, takes valueName: String? = nil, help: String? = nil
  ) {
    self.name = name
    let optionName = option ?? name.replacing("_", with: "-")
    options =
      help.map {
        [FieldOption(path: [name], name: optionName, valueName: valueName, help: $0, rule: rule)]
      } ?? []
    value = { $0[keyPath: path]?.fieldValue }
    read = { (record, value, field) throws(FieldError) in
      record[keyPath: path] = try Self.read(value, field, rule)
    }
    parse = { (record, text, field) throws(FieldError) in record[keyPath: path] = try Value(text: text, field: field) }
    override = { record, other in
      if let value = other[keyPath: path] { record[keyPath: path] = value }
    }
    validate = { (record, field) throws(FieldError) in
      if let value = record[keyPath: path] { try rule.check(value, field) }
    }
  }

  /// Describes a field that always has a value.
  package init<Value: FieldConvertible>(
    _ name: String, _ path: any WritableKeyPath<Record, Value> & Sendable, _ rule: FieldRule<Value> = .any
  ) {
    self.name = name
    options = []
    value = { $0[keyPath: path].fieldValue }
    read = { (record, value, field) throws(FieldError) in
      record[keyPath: path] = try Self.read(value, field, rule)
    }
    parse = { (record, text, field) throws(FieldError) in record[keyPath: path] = try Value(text: text, field: field) }
    override = { record, other in record[keyPath: path] = other[keyPath: path] }
    validate = { (record, field) throws(FieldError) in try rule.check(record[keyPath: path], field) }
  }

  /// Describes a field that is a nested record; its fields are set individually.
  package init<Value: FieldRecord>(group name: String, _ path: any WritableKeyPath<Record, Value?> & Sendable) {
    self.name = name
    options = Value.fields.flatMap { field in field.options.map { $0.nested(in: name) } }
    value = { $0[keyPath: path]?.fieldValue }
    read = { (record, value, field) throws(FieldError) in
      var group = record[keyPath: path] ?? Value()
      try group.set(value, field: field)
      record[keyPath: path] = group
    }
    parse = { (record, text, field) throws(FieldError) in record[keyPath: path] = try Value(text: text, field: field) }
    override = { record, other in
      guard let value = other[keyPath: path] else { return }
      record[keyPath: path] = record[keyPath: path]?.overridden(by: value) ?? value
    }
    validate = { (record, field) throws(FieldError) in try record[keyPath: path]?.validate(field) }
  }

  private static func read<Value: FieldConvertible>(
    _ value: FieldValue, _ field: String, _ rule: FieldRule<Value>
  ) throws(FieldError) -> Value {
    let value = try Value(value, field: field)
    try rule.check(value, field)
    return value
  }
}

/// A record that is described by its fields.
package protocol FieldRecord: FieldConvertible, Hashable {
  /// Creates a record in which no field is set.
  init()

  /// The fields, in the order of the contract.
  static var fields: [Field<Self>] { get }
}

extension FieldRecord {
  package var fieldValue: FieldValue {
    var set: [String: FieldValue] = [:]
    for field in Self.fields { set[field.name] = field.value(self) }
    return .record(set)
  }

  /// Creates a record from the fields that a caller has set.
  ///
  /// Set fields are checked against their rules; the other fields have the values of `init()`.
  /// - `field`: the path of the record; empty for the outermost one.
  package init(_ value: FieldValue, field: String) throws(FieldError) {
    self.init()
    try set(value, field: field)
  }

  /// Sets the fields that a caller has set, after checking them against their rules; the other fields keep their values.
  ///
  /// Does the same as `overridden(by:)` with a record of these fields, in less time.
  /// - `field`: the path of the record; empty for the outermost one.
  package mutating func set(_ value: FieldValue, field: String) throws(FieldError) {
    guard case .record(var values) = value else { throw FieldError("\(field) must be a record", field: field) }
    for row in Self.fields where !values.isEmpty {
      if let value = values.removeValue(forKey: row.name) { try row.read(&self, value, Self.path(field, row.name)) }
    }
  }

  /// Sets a field to what a text stands for, without checking it against its rule.
  /// - `name`: The field's name, with dashes.
  /// - Returns: Whether there is such a field.
  package mutating func set(_ name: String, text: String, field: String) throws(FieldError) -> Bool {
    guard let row = Self.fields.first(where: { $0.optionName == name }) else { return false }
    try row.parse(&self, text, field)
    return true
  }

  /// Throws an error, because a record has no text form by default.
  package init(text: String, field: String) throws(FieldError) { throw Self.unreadable(text, field: field) }

  package static var textForm: String { "a record" }

  /// Checks each field against its rule.
  /// - `path`: the path of the record; empty for the outermost one.
  package func validate(_ path: String) throws(FieldError) {
    for row in Self.fields { try row.validate(self, Self.path(path, row.name)) }
  }

  /// Returns this record with each field that is set in `other` replaced.
  package func overridden(by other: Self) -> Self {
    var merged = self
    for row in Self.fields { row.override(&merged, other) }
    return merged
  }

  private static func path(_ record: String, _ field: String) -> String {
    record.isEmpty ? field : "\(record).\(field)"
  }
}
