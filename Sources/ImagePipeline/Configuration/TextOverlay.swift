package import Fields
package import ImageKernels

extension TextStyle.Alignment: FieldChoice {}

/// A text that is drawn on the result.
package struct TextOverlay: Sendable, Hashable {
  /// The text.
  @Exact package var text: String
  /// Families and style, as in `DejaVu Sans Bold`; `Sans` by default.
  @Exact package var font: String? = nil
  /// The size of the font's em square in pixels of the result; that of `relativeSize` by default.
  package var size: Double?
  /// The size of the font's em square as a fraction of the result's height, above 0 and at most 1; 0.05 by default.
  package var relativeSize: Double?
  /// The color of the letters; white by default.
  package var color: Color?
  /// The width of the outline around letters as a fraction of the size, 0 to 0.5; no outline by default.
  package var outlineWidth: Double?
  /// The color of the outline; black by default.
  package var outlineColor: Color?
  /// The color of a box behind the text; no box by default.
  package var boxColor: Color?
  /// The distance of the box's edges from the lines as a fraction of the size, 0 to 4; 0.25 by default.
  package var boxPadding: Double?
  /// The width at which lines are wrapped as a fraction of the result's side along which they run, above 0 and at most
  /// 1; 1 by default.
  package var maxWidth: Double?
  /// The alignment of lines with each other; `start` by default.
  package var alignment: TextStyle.Alignment?

  /// The font of a text that names none.
  static let defaultFont = "Sans"

  /// Checks the fields against each other.
  /// - `path`: the path of this record, such as `overlays[1].text`.
  /// - Throws: `invalidField` with the path of the first invalid field, `unservedField` in a build without texts.
  func checkCombination(_ path: String) throws(PipelineError) {
    guard TextFonts.isSupported else {
      throw PipelineError(
        .unservedField, "\(path) is set, but this worker was built without Pango; draw an image instead", field: path)
    }
    if text.isEmpty {
      throw PipelineError(.invalidField, "\(path).text is not set; it must be a text", field: "\(path).text")
    }
    if let size, let relativeSize {
      throw PipelineError(
        .invalidField, "\(path).size is \(size), and cannot be combined with relative_size, which is \(relativeSize)",
        field: "\(path).size")
    }
    if outlineColor != nil, (outlineWidth ?? 0) == 0 {
      throw PipelineError(
        .invalidField, "\(path).outline_color is set without an outline; set outline_width, too",
        field: "\(path).outline_color")
    }
    if let boxPadding, boxColor == nil {
      throw PipelineError(
        .invalidField, "\(path).box_padding is \(boxPadding) without a box; set box_color, too",
        field: "\(path).box_padding")
    }
  }

  /// Returns how the text is drawn.
  /// - Parameters:
  ///   - canvas: The size of the result.
  ///   - rotation: The clockwise rotation of the overlay in degrees.
  ///   - factor: The size of the result compared with that of the request, below 1 for previews.
  /// - Returns: The style, with lengths in pixels of the result.
  func style(on canvas: PixelSize, rotation: Int, factor: Double) -> TextStyle {
    let size = max(0.5, self.size.map { $0 * factor } ?? (relativeSize ?? 0.05) * Double(canvas.height))
    let side = rotation % 180 == 0 ? canvas.width : canvas.height
    var style = TextStyle(
      text: text, font: font ?? Self.defaultFont, size: size, maxWidth: (maxWidth ?? 1) * Double(side))
    style.alignment = alignment ?? .start
    style.color = (color ?? .white).vector
    if let outlineWidth, outlineWidth > 0 {
      style.outline = TextStyle.Outline(
        width: outlineWidth * size, color: (outlineColor ?? Color(red: 0, green: 0, blue: 0)).vector)
    }
    style.box = boxColor.map { TextStyle.Box(color: $0.vector, padding: (boxPadding ?? 0.25) * size) }
    style.quarterTurns = rotation / 90
    return style
  }
}

extension Color {
  fileprivate var vector: SIMD3<UInt8> { SIMD3(red, green, blue) }
}

extension TextOverlay: FieldRecord {
  /// Creates an empty text, the text of a message without values.
  package init() { self.init(text: "") }

  package static let fields: [Field<TextOverlay>] = [
    Field("text", \.text, .function("at most \(TextStyle.maxByteCount) bytes", checkText)),
    Field("font", \.font, .function("between 1 and 255 bytes", checkFont)),
    Field("size", \.size, .range(1...4096)),
    Field("relative_size", \.relativeSize, .values("above 0 and at most 1") { $0 > 0 && $0 <= 1 }),
    Field("color", \.color), Field("outline_width", \.outlineWidth, .range(0...0.5)),
    Field("outline_color", \.outlineColor), Field("box_color", \.boxColor),
    Field("box_padding", \.boxPadding, .range(0...4)),
    Field("max_width", \.maxWidth, .values("above 0 and at most 1") { $0 > 0 && $0 <= 1 }),
    Field("alignment", \.alignment),
  ]

  @Sendable private static func checkText(_ text: String, _ field: String) throws(FieldError) {
    guard text.utf8.count <= TextStyle.maxByteCount else {
      throw FieldError(
        "\(field) has \(text.utf8.count) bytes; it must have at most \(TextStyle.maxByteCount)", field: field)
    }
    if let control = text.unicodeScalars.first(where: { $0.properties.generalCategory == .control && $0 != "\n" }) {
      throw FieldError(
        "\(field) contains the control character U+00\(hexadecimal(control)); the only one that is accepted is the line "
          + "feed, U+000A", field: field)
    }
  }

  @Sendable private static func checkFont(_ font: String, _ field: String) throws(FieldError) {
    guard (1...255).contains(font.utf8.count) else {
      throw FieldError("\(field) has \(font.utf8.count) bytes; it must have between 1 and 255", field: field)
    }
    if let control = font.unicodeScalars.first(where: { $0.properties.generalCategory == .control }) {
      throw FieldError("\(field) contains the control character U+00\(hexadecimal(control))", field: field)
    }
  }

  private static func hexadecimal(_ control: Unicode.Scalar) -> String {
    let digits = String(control.value, radix: 16, uppercase: true)
    return String(repeating: "0", count: 2 - digits.count) + digits
  }
}
