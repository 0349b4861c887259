/// A rule that a field's value must satisfy.
package struct FieldRule<Value: Sendable>: Sendable {
  /// The accepted values, such as "between 0 and 1"; empty if every value of the type is accepted.
  package let accepted: String
  let check: @Sendable (Value, _ field: String) throws(FieldError) -> Void

  /// A rule that accepts every value.
  package static var any: FieldRule { FieldRule(accepted: "") { (_, _) throws(FieldError) in } }

  /// Returns a rule that accepts the values for which `allows` returns true; `accepted` completes "it must be".
  package static func values(
    _ accepted: String, _ allows: @escaping @Sendable (Value) -> Bool
  ) -> FieldRule {
    FieldRule(accepted: accepted) { (value, field) throws(FieldError) in
      guard allows(value) else {
        throw FieldError("\(field) is \(shown(value)); it must be \(accepted)", field: field)
      }
    }
  }

  private static func shown(_ value: Value) -> String {
    let text = "\(value)"
    return text.asName ?? "\(text.beginning)…"
  }

  /// Returns a rule that a function checks.
  /// - `accepted`: the accepted values, for messages and help texts.
  package static func function(
    _ accepted: String = "", _ check: @escaping @Sendable (Value, _ field: String) throws(FieldError) -> Void
  ) -> FieldRule {
    FieldRule(accepted: accepted, check: check)
  }
}

extension FieldRule where Value == Double {
  /// A rule that accepts numbers between 0 and 1; the error of a percentage suggests its fraction.
  package static var fraction: FieldRule {
    FieldRule(accepted: "between 0 and 1") { (value, field) throws(FieldError) in
      if (0...1).contains(value) { return }
      let hint = (10...100).contains(value) ? "; did you mean \(value / 100)?" : ""
      throw FieldError("\(field) is \(value); it must be between 0 and 1\(hint)", field: field)
    }
  }
}

extension FieldRule where Value: Comparable {
  /// Returns a rule that accepts the values in a range.
  package static func range(_ range: ClosedRange<Value>) -> FieldRule where Value: Sendable {
    values("between \(range.lowerBound) and \(range.upperBound)") { range.contains($0) }
  }
}
