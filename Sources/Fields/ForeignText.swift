extension String {
  /// The parts between separators.
  ///
  /// `split` on a string finds no separator before a combining mark, with which it is one character.
  package func parts(separator: Unicode.Scalar, maxSplits: Int = .max) -> [String] {
    unicodeScalars.split(separator: separator, maxSplits: maxSplits, omittingEmptySubsequences: false)
      .map { String($0) }
  }
}

extension StringProtocol {
  /// The beginning of a text that a client sent, as messages show it.
  ///
  /// Counted in bytes, because a character may have any number of accents.
  package var beginning: String { String(decoding: utf8.prefix(64), as: UTF8.self) }

  /// The text if it is as short as names are, otherwise `nil`, which equals no name.
  ///
  /// Texts are compared as people read them. That takes a third of a second for a letter with a million accents.
  package var asName: String? { utf8.count <= 64 ? String(self) : nil }
}
