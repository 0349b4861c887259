/// A numeric parameter of a filter.
package struct FilterParameter: Sendable, Hashable {
  /// The name that requests use.
  package let name: String
  /// A short description with the unit.
  package let summary: String
  /// The accepted values.
  package let range: ClosedRange<Double>
  /// The value of a parameter that is not set.
  package let defaultValue: Double
  /// Whether only whole numbers are allowed.
  package let isWhole: Bool
  /// Whether the value is a length in pixels of the result, which is scaled with it.
  let isLength: Bool

  init(
    _ name: String, _ range: ClosedRange<Double>, default defaultValue: Double, isWhole: Bool = false,
    isLength: Bool = false, _ summary: String
  ) {
    self.name = name
    self.range = range
    self.defaultValue = defaultValue
    self.isWhole = isWhole
    self.isLength = isLength
    self.summary = summary
  }

  /// Returns whether `value` lies in the range, and is a whole number if that is required.
  package func allows(_ value: Double) -> Bool {
    range.contains(value) && (!isWhole || value == value.rounded())
  }

  /// A description of the range, such as "between 0.1 and 50".
  package var rangeDescription: String {
    let kind = isWhole ? "a whole number " : ""
    return "\(kind)between \(Self.text(range.lowerBound)) and \(Self.text(range.upperBound))"
  }

  /// Formats a number with at most four decimal places.
  package static func text(_ value: Double) -> String {
    let rounded = (value * 10_000).rounded() / 10_000
    guard let whole = Int(exactly: rounded) else { return "\(rounded)" }
    return "\(whole)"
  }
}
