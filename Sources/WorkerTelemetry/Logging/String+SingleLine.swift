extension String {
  /// This text with control characters and line ends escaped, as in `\u{1b}`.
  ///
  /// A name or a message of another process must not look like a line of ours, and must not control the terminal.
  package var singleLine: String {
    guard unicodeScalars.contains(where: \.isControlling) else { return self }
    var result = ""
    for scalar in unicodeScalars {
      if scalar.isControlling {
        result += scalar == "\n" ? "\\n" : "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

extension Unicode.Scalar {
  /// Whether terminals obey this character instead of showing it: as a control code, a line end or a change of direction.
  package var isControlling: Bool {
    switch properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    default: properties.isBidiControl
    }
  }
}
