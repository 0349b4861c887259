/// All that is known of one field of a record: its row.
///
/// What a record is read from and written to, merged and checked by, follows from its rows, and so do its options on a
/// command line.
package struct Field<Record>: Sendable {
  /// The name in the wire contract.
  package let name: String
  /// The field's options on a command line, or those of its own fields.
  package let options: [FieldOption]
  /// The value; `nil` where the field is not set.
  let value: @Sendable (Record) -> FieldValue?
  /// Sets the field, and checks its value against its rule.
  let read: @Sendable (inout Record, FieldValue, _ path: String) throws(FieldError) -> Void
  /// Takes the other record's value, where it has one.
  let override: @Sendable (inout Record, Record) -> Void
  let validate: @Sendable (Record, _ path: String) throws(FieldError) -> Void

  /// A field that is set or not.
  /// - `rule`: what its value must keep.
  /// - `option`: its option on a command line; `nil` where another field's option sets it.
  package init<Value: FieldConvertible>(
    _ name: String, _ path: any WritableKeyPath<Record, Value?> & Sendable, _ rule: FieldRule<Value> = .any,
    option: OptionText? = nil
  ) {
    self.name = name
    options = option.map { [FieldOption(path: [name], text: $0, rule: rule)] } ?? []
    value = { $0[keyPath: path]?.fieldValue }
    read = { (record, value, field) throws(FieldError) in
      record[keyPath: path] = try Self.read(value, field, rule)
    }
    override = { record, other in
      if let value = other[keyPath: path] { record[keyPath: path] = value }
    }
    validate = { (record, field) throws(FieldError) in
      if let value = record[keyPath: path] { try rule.check(value, field) }
    }
  }

  /// A field that always has a value.
  package init<Value: FieldConvertible>(
    _ name: String, _ path: any WritableKeyPath<Record, Value> & Sendable, _ rule: FieldRule<Value> = .any
  ) {
    self.name = name
    options = []
    value = { $0[keyPath: path].fieldValue }
    read = { (record, value, field) throws(FieldError) in
      record[keyPath: path] = try Self.read(value, field, rule)
    }
    override = { record, other in record[keyPath: path] = other[keyPath: path] }
    validate = { (record, field) throws(FieldError) in try rule.check(record[keyPath: path], field) }
  }

  /// A field that is a record whose fields are set one by one.
  package init<Value: FieldRecord>(group name: String, _ path: any WritableKeyPath<Record, Value?> & Sendable) {
    self.name = name
    options = Value.fields.flatMap { field in field.options.map { $0.nested(in: name) } }
    value = { $0[keyPath: path]?.fieldValue }
    read = { (record, value, field) throws(FieldError) in
      record[keyPath: path] = try Value(value, field: field)
    }
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

/// A type that consists of fields.
package protocol FieldRecord: FieldConvertible, Hashable {
  /// A record of which nothing is set.
  init()

  /// One row for each field, in the contract's order.
  static var fields: [Field<Self>] { get }
}

extension FieldRecord {
  package var fieldValue: FieldValue {
    var set: [String: FieldValue] = [:]
    for field in Self.fields { set[field.name] = field.value(self) }
    return .record(set)
  }

  /// A record of which a caller has set some fields.
  ///
  /// Those are checked against their rules; others are as in `init()`.
  /// - `field`: the record's path, empty for the outermost one.
  package init(_ value: FieldValue, field: String) throws(FieldError) {
    self.init()
    guard case .record(let set) = value else { throw FieldError("\(field) must be a record", field: field) }
    guard !set.isEmpty else { return }
    for row in Self.fields {
      if let value = set[row.name] { try row.read(&self, value, Self.path(field, row.name)) }
    }
  }

  package init(text: String, field: String) throws(FieldError) { throw Self.unreadable(text, field: field) }

  package static var textForm: String { "a record" }

  /// Checks each field against its rule.
  /// - `path`: the record's, empty for the outermost one.
  package func validate(_ path: String) throws(FieldError) {
    for row in Self.fields { try row.validate(self, Self.path(path, row.name)) }
  }

  /// This record with the set fields of `other` in place of its own.
  package func overridden(by other: Self) -> Self {
    var merged = self
    for row in Self.fields { row.override(&merged, other) }
    return merged
  }

  private static func path(_ record: String, _ field: String) -> String {
    record.isEmpty ? field : "\(record).\(field)"
  }
}
