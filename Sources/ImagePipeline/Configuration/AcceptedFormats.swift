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

  /// An element of a list, as in `image/*;q=0.5`.
  private struct MediaRange {
    var formats: Set<ImageFormat>
    var isRefused: Bool
    /// 0 for all types, 1 for all images, 2 for one format.
    var precision: Int

    /// Returns `nil` for an unknown name without a slash.
    init?(_ element: Substring) {
      let parts = element.split(separator: ";").map { $0.filter { !$0.isWhitespace }.lowercased() }
      let name = parts.first ?? "/"
      isRefused = parts.dropFirst().contains { $0.hasPrefix("q=") && Double($0.dropFirst(2)) == 0 }
      (formats, precision) = (basic, name == "image/*" ? 1 : 0)
      if name == "*/*" || name == "image/*" || name == "*" { return }
      let short = name.hasPrefix("image/") ? String(name.dropFirst("image/".count)) : name
      let format = OutputFormat(rawValue: short) ?? OutputFormat.synonyms[short]
      let known = format?.imageFormat.flatMap { all.contains($0) ? $0 : nil }
      if known == nil, !name.contains("/") { return nil }
      (formats, precision) = (known.map { [$0] } ?? [], 2)
    }
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
    var ranges: [MediaRange] = []
    for element in text.split(separator: ",") {
      guard let range = MediaRange(element) else { throw Self.unreadable(element.beginning, field: field) }
      ranges.append(range)
    }
    var (accepted, refused): (Set<ImageFormat>, Set<ImageFormat>) = ([], [])
    // The most precise range that matches a format counts (RFC 9110, 12.5.1).
    for range in ranges.sorted(by: { ($0.precision, $0.isRefused ? 0 : 1) < ($1.precision, $1.isRefused ? 0 : 1) }) {
      if range.isRefused {
        accepted.subtract(range.formats)
        refused.formUnion(range.formats)
      } else {
        accepted.formUnion(range.formats)
      }
    }
    self.init(accepted.isEmpty ? Self.basic.subtracting(refused) : accepted)
  }

  package static var textForm: String {
    "a list of \(all.map(\.rawValue).joined(separator: ", ")), or an Accept header"
  }
}

/// The time that a choice of the format may take for a smaller result.
package enum AutoEffort: String, Sendable, Hashable, FieldChoice {
  case low, medium, high
}
