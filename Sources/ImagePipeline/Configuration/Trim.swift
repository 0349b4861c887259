package import Fields

/// The uniform border to remove.
///
/// A field that is `nil` has its default value.
package struct Trim: Sendable, Hashable {
  /// The maximum difference of each channel from the color of the border, 0 to 255; 10 by default.
  package var threshold: Int?
  /// The color of the border; that of the first stored pixel by default.
  package var color: Color?
  /// Whether as much is removed on the left as on the right; false by default.
  package var isEqualHorizontally: Bool?
  /// Whether as much is removed at the top as at the bottom; false by default.
  package var isEqualVertically: Bool?

  package init(
    threshold: Int? = nil, color: Color? = nil, isEqualHorizontally: Bool? = nil, isEqualVertically: Bool? = nil
  ) {
    self.threshold = threshold
    self.color = color
    self.isEqualHorizontally = isEqualHorizontally
    self.isEqualVertically = isEqualVertically
  }

  static let defaultThreshold = 10
}

extension Trim: FieldRecord {
  package init() { self.init(threshold: nil) }

  package static let fields: [Field<Trim>] = [
    Field(
      "threshold", \.threshold, .range(0...255), option: "trim-threshold", takes: "levels",
      help:
        "Trim: Remove the uniform border whose pixels differ from its color by at most this. Each option of trim turns it "
        + "on. Default: 10."),
    Field(
      "color", \.color, option: "trim-color", takes: "color",
      help: "Trim: Remove a border of this color. Default: that of the first stored pixel."),
    Field(
      "equal_horizontal", \.isEqualHorizontally, option: "trim-equal-horizontal",
      help: "Trim: Remove as much on the left as on the right. Default: false."),
    Field(
      "equal_vertical", \.isEqualVertically, option: "trim-equal-vertical",
      help: "Trim: Remove as much at the top as at the bottom. Default: false."),
  ]
}
