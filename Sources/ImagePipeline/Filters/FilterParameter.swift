/// A number that a filter can be given.
package struct FilterParameter: Sendable, Hashable {
  /// The name that requests use.
  package let name: String
  /// What it does, with its unit.
  package let summary: String
  /// The accepted values.
  package let range: ClosedRange<Double>
  /// The value of a parameter that is not set.
  package let defaultValue: Double
  /// Whether only whole numbers are allowed.
  package let isWhole: Bool
  /// Whether it counts pixels of the result, and so shrinks with it.
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

  /// Whether `value` lies in the range, and is whole where it must be.
  package func allows(_ value: Double) -> Bool {
    range.contains(value) && (!isWhole || value == value.rounded())
  }

  /// As in "between 0.1 and 50".
  package var rangeDescription: String {
    let kind = isWhole ? "a whole number " : ""
    return "\(kind)between \(Self.text(range.lowerBound)) and \(Self.text(range.upperBound))"
  }

  /// The number with at most four digits after the point.
  package static func text(_ value: Double) -> String {
    let rounded = (value * 10_000).rounded() / 10_000
    guard let whole = Int(exactly: rounded) else { return "\(rounded)" }
    return "\(whole)"
  }
}
