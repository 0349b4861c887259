/// Parses environment variables by the rules of the OpenTelemetry specification, and collects warnings about invalid
/// values.
struct VariableReader {
  let variables: [String: String]
  private(set) var warnings: [String] = []

  mutating func warn(_ warning: String) {
    if !warnings.contains(warning) { warnings.append(warning) }
  }

  /// Returns the value without surrounding spaces; an empty value counts as unset.
  func string(_ name: String) -> String? {
    variables[name].map { String($0[...].trimmed) }.flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Returns the first of the variables that is set.
  func first(_ names: [String]) -> (name: String, value: String)? {
    for name in names {
      if let value = string(name) { return (name, value) }
    }
    return nil
  }

  mutating func bool(_ name: String) -> Bool {
    guard let value = string(name) else { return false }
    if value.lowercased() != "true", value.lowercased() != "false" {
      warn("\(name) is \"\(value)\"; it must be true or false; using false")
    }
    return value.lowercased() == "true"
  }

  mutating func milliseconds(_ names: [String], default defaultValue: Int) -> Duration {
    .milliseconds(int(names, default: defaultValue, in: 1...86_400_000))
  }

  mutating func int(_ names: [String], default defaultValue: Int, in range: ClosedRange<Int>) -> Int {
    guard let (name, text) = first(names) else { return defaultValue }
    guard let value = Int(text), range.contains(value) else {
      warn(
        "\(name) is \"\(text)\"; it must be a whole number between \(range.lowerBound) and \(range.upperBound); "
          + "using \(defaultValue)")
      return defaultValue
    }
    return value
  }

  /// Parses a comma-separated list of `key=value` with percent-encoded values.
  mutating func pairs(_ name: String) -> [(key: String, value: String)] {
    var pairs: [(key: String, value: String)] = []
    for part in (string(name) ?? "").split(separator: ",") {
      let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard halves.count == 2, !halves[0].trimmed.isEmpty, let value = PercentEncoding.decode(halves[1].trimmed) else {
        // Do not log the entry; its value may be a secret.
        warn("\(name) has an entry that is not key=value; the entry is ignored")
        continue
      }
      pairs.append((String(halves[0].trimmed), value))
    }
    return pairs
  }

  /// Parses headers for a call; keys that gRPC metadata cannot contain are skipped with a warning.
  mutating func headers(_ names: [String]) -> [(key: String, value: String)] {
    guard let name = first(names)?.name else { return [] }
    var headers: [(key: String, value: String)] = []
    for (key, value) in pairs(name) {
      let key = key.lowercased()
      let isKey = key.utf8.allSatisfy { "abcdefghijklmnopqrstuvwxyz0123456789_-.".utf8.contains($0) }
      let isValue = value.utf8.allSatisfy { (0x20...0x7e).contains($0) }
      guard isKey, isValue, !key.hasPrefix("grpc-"), !key.hasSuffix("-bin") else {
        warn("\(name) has the header \"\(key)\", which gRPC metadata cannot carry; the header is ignored")
        continue
      }
      headers.append((key, value))
    }
    return headers
  }
}

/// Percent-encoding, as in the OTEL variables with lists.
private enum PercentEncoding {
  /// Decodes percent-encoded text; `nil` if a percent sign is not followed by two digits, or the bytes are not UTF-8.
  static func decode(_ text: Substring) -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let value = UInt8(hexadecimal: Substring(rest.prefix(2)).lowercased()[...].utf8)
      else { return nil }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
