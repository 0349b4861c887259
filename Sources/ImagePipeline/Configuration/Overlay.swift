package import Fields
package import ImageKernels

extension OverlayBlend: FieldChoice {}

/// An auxiliary image or a text that is drawn on the result.
package struct Overlay: Sendable, Hashable {
  /// The name of an auxiliary image of the request, or of a file in the operator's directory; empty with a text.
  @Exact package var image: String
  /// The factor of the image's alpha, 0 to 1; 1 by default.
  package var opacity: Double?
  /// The width as a fraction of the result's width, above 0 and at most 1; none by default.
  package var scale: Double?
  /// The width in pixels; by default that which keeps the aspect ratio, or that of the image without a height.
  package var width: Int?
  /// The height in pixels; by default that which keeps the aspect ratio, or that of the image without a width.
  package var height: Int?
  /// The side or corner of the result to which the overlay is attached; neither `smart` nor `faces`; `center` by
  /// default.
  package var gravity: Gravity?
  /// The unit of `x` and `y`.
  package var unit = Crop.Unit.pixels
  /// The distance from the left or right edge that `gravity` names, or from the horizontal center to the right.
  package var x = 0.0
  /// The distance from the top or bottom edge that `gravity` names, or from the vertical center downwards.
  package var y = 0.0
  /// How colors are mixed; `over` by default.
  package var blend: OverlayBlend?
  /// The clockwise rotation of the image in degrees: 0, 90, 180 or 270; 0 by default.
  package var rotation: Int?
  /// Whether the overlay is repeated over the whole result; no by default.
  package var tile: Bool?
  /// A text instead of an image, which has no `scale`, `width` and `height`.
  package var text: TextOverlay?

  /// The maximum number of overlays of a result.
  package static let maxCount = 8

  /// Checks the fields of overlays against each other.
  /// - Throws: `invalidField` with the path of the first invalid field, such as `overlays[1].scale`; `unservedField` for a text in
  ///   a build without texts.
  static func check(_ overlays: [Overlay]) throws(PipelineError) {
    guard overlays.count <= maxCount else {
      throw PipelineError(
        .invalidField, "overlays has \(overlays.count) entries; at most \(maxCount) are accepted", field: "overlays")
    }
    for (index, overlay) in overlays.enumerated() { try overlay.checkCombination("overlays[\(index)]") }
  }

  private func checkCombination(_ path: String) throws(PipelineError) {
    if let text {
      try checkImageFields("\(path)")
      try text.checkCombination("\(path).text")
    } else if image.isEmpty {
      throw PipelineError(
        .invalidField, "\(path).image is not set; it must be the name of an image, unless text is set",
        field: "\(path).image")
    }
    if let scale, width != nil || height != nil {
      throw PipelineError(
        .invalidField, "\(path).scale is \(scale), and cannot be combined with width or height", field: "\(path).scale")
    }
    for (name, value) in [("x", x), ("y", y)] where unit == .fractions && !(-1...1).contains(value) {
      throw PipelineError(
        .invalidField, "\(path).\(name) is \(value); as a fraction it must be between -1 and 1",
        field: "\(path).\(name)")
    }
  }
}

extension Overlay {
  /// Checks that no field is set that an overlay with a text does not have.
  private func checkImageFields(_ path: String) throws(PipelineError) {
    let set: [(name: String, value: String?, hint: String)] = [
      ("image", image.isEmpty ? nil : String(reflecting: image.beginning), "set only one of them"),
      ("scale", scale.map { "\($0)" }, "set text.size or text.relative_size"),
      ("width", width.map { "\($0)" }, "set text.size or text.relative_size"),
      ("height", height.map { "\($0)" }, "set text.size or text.relative_size"),
    ]
    for (name, value, hint) in set {
      guard let value else { continue }
      throw PipelineError(
        .invalidField, "\(path).\(name) is \(value), and cannot be combined with text; \(hint)",
        field: "\(path).\(name)")
    }
  }
}

extension Overlay: FieldRecord {
  /// Creates an overlay without an image, the overlay of a message without values.
  package init() { self.init(image: "") }

  package static let fields: [Field<Overlay>] = [
    Field("image", \.image, .values("at most 255 bytes") { $0.utf8.count <= 255 }),
    Field("opacity", \.opacity, .fraction),
    Field("scale", \.scale, .values("above 0 and at most 1") { $0 > 0 && $0 <= 1 }),
    Field("width", \.width, .range(1...ProcessingConfiguration.maxBound)),
    Field("height", \.height, .range(1...ProcessingConfiguration.maxBound)),
    Field("gravity", \.gravity, places), Field("unit", \.unit), Field("x", \.x, offset), Field("y", \.y, offset),
    Field("blend", \.blend),
    Field("rotation", \.rotation, .values("0, 90, 180 or 270") { [0, 90, 180, 270].contains($0) }),
    Field("tile", \.tile), Field(group: "text", \.text),
  ]

  private static let places = FieldRule<Gravity>.values("center, or a side or corner as in south_east") {
    $0 != .smart && $0 != .faces
  }

  private static let offset = FieldRule<Double>.values(
    "between -\(ProcessingConfiguration.maxBound) and \(ProcessingConfiguration.maxBound)"
  ) { abs($0) <= Double(ProcessingConfiguration.maxBound) }

  /// Parses an overlay in command-line notation.
  ///
  /// An image is `logo`, or `logo,scale=0.2,gravity=south-east,x=10,y=10`; a text is `text=For sale,size=24,gravity=south`.
  /// A backslash precedes commas of names and texts, and `\\n` is a new line.
  package init(text: String, field: String) throws(FieldError) {
    let isText = text.unicodeScalars.starts(with: "text=".unicodeScalars)
    var parts = Self.escapedParts(text)
    self.init(image: isText ? "" : parts.removeFirst())
    if !isText, image.isEmpty { throw Self.unreadable(text, field: field) }
    for part in parts {
      let pair = part.parts(separator: "=", maxSplits: 1)
      guard pair.count == 2 || pair[0] == "tile" else {
        throw FieldError(
          "\(field) \"\(text)\": \"\(part)\" is not a field and its value, as in opacity=0.5", field: field)
      }
      try set(pair[0], pair.count == 2 ? pair[1] : "true", of: text, field)
    }
    try validate(field)
  }

  package static var textForm: String {
    "the name of an image and fields, as in logo,scale=0.2,gravity=south-east,x=10,y=10; or a text, as in text=For sale,size=24"
  }

  /// Splits at commas without a backslash, and replaces what backslashes stand for.
  private static func escapedParts(_ text: String) -> [String] {
    var parts = [""]
    var isEscaped = false
    for scalar in text.unicodeScalars {
      if isEscaped {
        parts[parts.count - 1].unicodeScalars.append(scalar == "n" ? "\n" : scalar)
        isEscaped = false
      } else if scalar == "\\" {
        isEscaped = true
      } else if scalar == "," {
        parts.append("")
      } else {
        parts[parts.count - 1].unicodeScalars.append(scalar)
      }
    }
    return parts
  }

  private mutating func set(
    _ name: String, _ value: String, of text: String, _ field: String
  ) throws(FieldError) {
    let path = "\(field) \"\(text)\": \(name)"
    let own = Self.fields.map(\.optionName).filter { !["image", "text"].contains($0) }
    if own.contains(name), try set(name, text: value, field: path) { return }
    if self.text != nil || name == "text" {
      var content = self.text ?? TextOverlay()
      let isKnown = try content.set(name, text: value, field: path)
      self.text = content
      if isKnown { return }
    }
    let names = own + (self.text == nil ? [] : TextOverlay.fields.map(\.optionName))
    throw FieldError(
      "\(path) is not a field of overlays; they have: \(names.joined(separator: ", "))"
        + NearestName.question(name, in: names), field: field)
  }
}
