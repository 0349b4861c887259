/// A text that equals another one only if both have the same bytes.
///
/// Swift compares texts as people read them: é as one scalar equals e with an accent, and some ideographs equal others that
/// are drawn differently. Requests with such texts have different results, and items with such ids are two.
@propertyWrapper
package struct Exact<Text: ExactlyComparable>: Hashable, Sendable {
  /// The text.
  package var wrappedValue: Text

  package init(wrappedValue: Text) { self.wrappedValue = wrappedValue }

  /// Whether both texts have the same bytes.
  package static func == (one: Exact, other: Exact) -> Bool {
    switch (one.wrappedValue.exactBytes, other.wrappedValue.exactBytes) {
    case (nil, nil): true
    case (let one?, let other?): one.elementsEqual(other)
    default: false
    }
  }

  package func hash(into hasher: inout Hasher) {
    guard let bytes = wrappedValue.exactBytes else { return }
    for byte in bytes { hasher.combine(byte) }
    hasher.combine(UInt8.max)  // which no text contains
  }
}

/// A text, or none.
package protocol ExactlyComparable: Sendable {
  /// The bytes of the text in UTF-8; `nil` for none.
  var exactBytes: String.UTF8View? { get }
}

extension String: ExactlyComparable {
  package var exactBytes: String.UTF8View? { utf8 }
}

extension Optional: ExactlyComparable where Wrapped == String {
  package var exactBytes: String.UTF8View? { self?.utf8 }
}

extension Dictionary where Key == Exact<String> {
  /// The value of a text.
  package subscript(_ text: String) -> Value? {
    get { self[Exact(wrappedValue: text)] }
    _modify { yield &self[Exact(wrappedValue: text)] }
  }
}
