/// What the value of a field must keep.
package struct FieldRule<Value: Sendable>: Sendable {
  /// As in "between 0 and 1"; empty where every value of the type will do.
  package let accepted: String
  let check: @Sendable (Value, _ field: String) throws(FieldError) -> Void

  private init(accepted: String, check: @escaping @Sendable (Value, String) throws(FieldError) -> Void) {
    (self.accepted, self.check) = (accepted, check)
  }

  /// Every value.
  package static var any: FieldRule { FieldRule(accepted: "") { (_, _) throws(FieldError) in } }

  /// Values that a predicate allows; `accepted` completes "it must be".
  package static func values(
    _ accepted: String, _ allows: @escaping @Sendable (Value) -> Bool
  ) -> FieldRule {
    FieldRule(accepted: accepted) { (value, field) throws(FieldError) in
      guard allows(value) else {
        throw FieldError("\(field) is \(value); it must be \(accepted)", field: field)
      }
    }
  }

  /// Values that only a function can tell.
  /// - `accepted`: for people.
  package static func function(
    _ accepted: String = "", _ check: @escaping @Sendable (Value, _ field: String) throws(FieldError) -> Void
  ) -> FieldRule {
    FieldRule(accepted: accepted, check: check)
  }
}

extension FieldRule where Value: Comparable {
  package static func range(_ range: ClosedRange<Value>) -> FieldRule where Value: Sendable {
    values("between \(range.lowerBound) and \(range.upperBound)") { range.contains($0) }
  }
}
