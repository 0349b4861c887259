/// The name that a misspelled one was meant to be.
package enum NearestName {
  /// Returns the name that is nearest to a text, or `nil` if none is near.
  ///
  /// Near is a name that differs in at most a third of its letters, and one in two.
  package static func of(_ text: String, in names: some Sequence<String>) -> String? {
    let nearest = names.map { (name: $0, distance: distance($0, text)) }.min { $0.distance < $1.distance }
    guard let nearest, nearest.distance <= max(1, nearest.name.count / 3) else { return nil }
    return nearest.name
  }

  /// Returns a question about the nearest name for an error message, or an empty text.
  package static func question(_ text: String, in names: some Sequence<String>) -> String {
    of(text, in: names).map { "; did you mean \($0)?" } ?? ""
  }

  /// Returns the fewest letters that must be inserted, removed or replaced to make one name of the other (Levenshtein).
  package static func distance(_ name: String, _ other: String) -> Int {
    let letters = Array(other.lowercased())
    var row = Array(0...letters.count)
    for (index, letter) in name.lowercased().enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for column in letters.indices {
        let replaced = diagonal + (letters[column] == letter ? 0 : 1)
        diagonal = row[column + 1]
        row[column + 1] = Swift.min(replaced, diagonal + 1, row[column] + 1)
      }
    }
    return row[letters.count]
  }
}
