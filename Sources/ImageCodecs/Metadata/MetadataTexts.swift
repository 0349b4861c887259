/// The texts that a result describes itself with.
package struct MetadataTexts: Sendable, Hashable {
  /// The title.
  package var title: String?
  /// The copyright notice.
  package var copyright: String?
  /// The description.
  package var description: String?

  /// Whether there is none.
  package var isEmpty: Bool { title == nil && copyright == nil && description == nil }

  package init(title: String? = nil, copyright: String? = nil, description: String? = nil) {
    self.title = title
    self.copyright = copyright
    self.description = description
  }
}
