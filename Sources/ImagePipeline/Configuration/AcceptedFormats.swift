package import Fields
package import ImageCodecs

/// A set of formats that the receiver of a result accepts.
package struct AcceptedFormats: Sendable, Hashable {
  /// The formats that results can have, in the order in which they are listed.
  static let all = ImageFormat.allCases.filter { $0.traits.output?.isImageFile ?? false }
  /// The maximum size of a list in bytes, several times that of the longest header of a browser.
  private static let maxByteCount = 4096
  /// The formats that every receiver of images accepts.
  private static let basic: Set<ImageFormat> = [.jpeg, .png]

  /// The formats; not empty.
  package let formats: Set<ImageFormat>

  /// Creates a set; JPEG and PNG if `formats` is empty.
  package init(_ formats: Set<ImageFormat>) { self.formats = formats.isEmpty ? Self.basic : formats }

  /// The formats without a specification: those that all current browsers show, without the slow ones.
  static let standard = AcceptedFormats([.jpeg, .png, .webp])

  /// Returns the formats that an element of a list stands for; `nil` for an unknown name without a slash.
  private static func formats(_ element: Substring) -> Set<ImageFormat>? {
    let parts = element.split(separator: ";").map { $0.filter { !$0.isWhitespace }.lowercased() }
    guard let name = parts.first else { return [] }
    let isRefused = parts.dropFirst().contains { $0.hasPrefix("q=") && Double($0.dropFirst(2)) == 0 }
    if isRefused { return [] }
    if name == "*/*" || name == "image/*" || name == "*" { return basic }
    let short = name.hasPrefix("image/") ? String(name.dropFirst("image/".count)) : name
    let format = OutputFormat(rawValue: short) ?? OutputFormat.synonyms[short]
    if let format = format?.imageFormat, all.contains(format) { return [format] }
    return name.contains("/") ? [] : nil
  }
}

extension AcceptedFormats: FieldConvertible {
  package var fieldValue: FieldValue {
    .word(Self.all.filter(formats.contains).map(\.rawValue).joined(separator: ","))
  }

  package init(_ value: FieldValue, field: String) throws(FieldError) {
    guard case .word(let text) = value else { throw FieldError("\(field) must be \(Self.textForm)", field: field) }
    try self.init(text: text, field: field)
  }

  package init(text: String, field: String) throws(FieldError) {
    guard text.utf8.count <= Self.maxByteCount else { throw Self.unreadable("\(text.beginning)…", field: field) }
    var formats: Set<ImageFormat> = []
    for element in text.split(separator: ",") {
      guard let named = Self.formats(element) else {
        throw Self.unreadable(element.beginning, field: field)
      }
      formats.formUnion(named)
    }
    self.init(formats)
  }

  package static var textForm: String {
    "a list of \(all.map(\.rawValue).joined(separator: ", ")), or an Accept header"
  }
}

/// The time that a choice of the format may take for a smaller result.
package enum AutoEffort: String, Sendable, Hashable, FieldChoice {
  case low, medium, high
}
