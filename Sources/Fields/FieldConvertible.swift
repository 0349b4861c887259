/// A type that a field's value can have.
package protocol FieldConvertible: Sendable {
  /// The value in its untyped form.
  var fieldValue: FieldValue { get }

  /// Converts an untyped value.
  /// - `field`: the path of the field, for error messages.
  init(_ value: FieldValue, field: String) throws(FieldError)

  /// Parses text from the command line.
  /// - `field`: the option, for error messages.
  init(text: String, field: String) throws(FieldError)

  /// The accepted spelling, as a noun phrase such as "a whole number".
  static var textForm: String { get }
}

extension FieldConvertible {
  /// Returns an error that shows the text and the accepted spelling.
  package static func unreadable(_ text: String, field: String) -> FieldError {
    FieldError("\(field) is \"\(text)\"; it must be \(textForm)", field: field)
  }

  fileprivate static func mismatch(_ field: String) -> FieldError {
    FieldError("\(field) must be \(textForm)", field: field)
  }
}

extension FieldConvertible where Self: LosslessStringConvertible {
  package init(text: String, field: String) throws(FieldError) {
    guard let value = Self(text) else { throw Self.unreadable(text, field: field) }
    self = value
  }
}

extension Bool: FieldConvertible {
  package var fieldValue: FieldValue { .flag(self) }

  package init(_ value: FieldValue, field: String) throws(FieldError) {
    guard case .flag(let flag) = value else { throw Self.mismatch(field) }
    self = flag
  }

  package static var textForm: String { "true or false" }
}

extension Int: FieldConvertible {
  /// The value in its untyped form; negative numbers become 0.
  package var fieldValue: FieldValue { .integer(UInt64(clamping: self)) }

  package init(_ value: FieldValue, field: String) throws(FieldError) {
    guard case .integer(let integer) = value else { throw Self.mismatch(field) }
    self = Int(clamping: integer)
  }

  package static var textForm: String { "a whole number" }
}

extension UInt64: FieldConvertible {
  package var fieldValue: FieldValue { .integer(self) }

  package init(_ value: FieldValue, field: String) throws(FieldError) {
    guard case .integer(let integer) = value else { throw Self.mismatch(field) }
    self = integer
  }

  package static var textForm: String { "a whole number" }
}

extension UInt8: FieldConvertible {
  package var fieldValue: FieldValue { .integer(UInt64(self)) }

  package init(_ value: FieldValue, field: String) throws(FieldError) {
    guard case .integer(let integer) = value else { throw Self.mismatch(field) }
    guard let byte = UInt8(exactly: integer) else {
      throw FieldError("\(field) is \(integer); it must be \(Self.textForm)", field: field)
    }
    self = byte
  }

  package static var textForm: String { "between 0 and 255" }
}

extension Double: FieldConvertible {
  package var fieldValue: FieldValue { .number(self) }

  package init(_ value: FieldValue, field: String) throws(FieldError) {
    guard case .number(let number) = value else { throw Self.mismatch(field) }
    self = number
  }

  package static var textForm: String { "a number" }
}

extension String: FieldConvertible {
  package var fieldValue: FieldValue { .word(self) }

  package init(_ value: FieldValue, field: String) throws(FieldError) {
    guard case .word(let word) = value else { throw Self.mismatch(field) }
    self = word
  }

  package init(text: String, field: String) throws(FieldError) { self = text }

  package static var textForm: String { "text" }
}

extension [String: Double]: FieldConvertible {
  package var fieldValue: FieldValue { .map(mapValues(FieldValue.number)) }

  package init(_ value: FieldValue, field: String) throws(FieldError) {
    guard case .map(let entries) = value else { throw Self.mismatch(field) }
    self = [:]
    for (key, value) in entries { self[key] = try Double(value, field: "\(field)[\(String(reflecting: key))]") }
  }

  /// Always throws: a dictionary cannot be written as text.
  package init(text: String, field: String) throws(FieldError) { throw Self.unreadable(text, field: field) }

  package static var textForm: String { "numbers by name" }
}

extension Array: FieldConvertible where Element: FieldConvertible {
  // A key path of a generic type would be instantiated at each call.
  package var fieldValue: FieldValue { .list(map { $0.fieldValue }) }

  package init(_ value: FieldValue, field: String) throws(FieldError) {
    guard case .list(let elements) = value else { throw Self.mismatch(field) }
    self = []
    for (index, element) in elements.enumerated() { append(try Element(element, field: "\(field)[\(index)]")) }
  }

  /// Parses an array of one element.
  package init(text: String, field: String) throws(FieldError) { self = [try Element(text: text, field: field)] }

  package static var textForm: String { Element.textForm }
}

/// A field type with a fixed set of values, whose raw values are spelled as in the contract.
package protocol FieldChoice: FieldConvertible, CaseIterable, RawRepresentable where RawValue == String {
  /// Additional spellings that the command line accepts.
  static var synonyms: [String: Self] { get }
}

extension FieldChoice {
  /// No additional spellings, unless a type provides its own.
  package static var synonyms: [String: Self] { [:] }

  package var fieldValue: FieldValue { .word(rawValue) }

  package init(_ value: FieldValue, field: String) throws(FieldError) {
    guard case .word(let word) = value else { throw Self.mismatch(field) }
    guard let choice = Self(rawValue: word) else { throw Self.unreadable(word, field: field) }
    self = choice
  }

  package init(text: String, field: String) throws(FieldError) {
    let name = text.lowercased()
    let spelled = String(name.map { $0 == "-" ? "_" : $0 })
    guard let choice = Self(rawValue: spelled) ?? Self.synonyms[name] else {
      throw Self.unreadable(text, field: field)
    }
    self = choice
  }

  /// The spelling on the command line.
  package var optionText: String { String(rawValue.map { $0 == "_" ? "-" : $0 }) }

  package static var textForm: String {
    let names = allCases.map(\.optionText)
    return names.count == 1 ? names[0] : names.dropLast().joined(separator: ", ") + " or " + names[names.count - 1]
  }
}
