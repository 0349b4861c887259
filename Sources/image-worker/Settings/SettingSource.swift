internal import ArgumentParser
internal import SystemPackage

/// A setting whose value cannot be used, or a name that is no setting's.
struct SettingsError: Error, CustomStringConvertible {
  var description: String
}

/// Where settings are read from, one after the other; notes the row of each.
///
/// Reading a setting is what declares it: its name, range, default and help stand in the call.
struct SettingSource {
  /// A value, and the spelling under which it was given.
  struct Given: Sendable {
    /// As in `--port`, `IMAGE_WORKER_PORT`, or `port in settings.yaml:3`.
    let name: String
    let text: String
  }

  /// The settings that were read so far.
  private(set) var rows: [SettingRow] = []
  private let given: [String: Given]

  /// - `given`: by the settings' keys.
  init(_ given: [String: Given] = [:]) { self.given = given }

  /// A whole number.
  mutating func integer(
    _ key: String, in range: ClosedRange<Int>, default defaultValue: Int, unit: String, _ help: String
  ) throws(SettingsError) -> Int {
    note(key, unit: unit, accepted: Self.text(range), default: "\(defaultValue)", help)
    return try given[key].map { value throws(SettingsError) in try Self.integer(value, in: range) } ?? defaultValue
  }

  /// A whole number whose default is found at the start, or that has none.
  /// - `default`: what the default is called.
  mutating func optionalInteger(
    _ key: String, in range: ClosedRange<Int>, default defaultText: String, unit: String, _ help: String
  ) throws(SettingsError) -> Int? {
    note(key, unit: unit, accepted: Self.text(range), default: defaultText, help)
    return try given[key].map { value throws(SettingsError) in try Self.integer(value, in: range) }
  }

  /// A switch that is off by default.
  mutating func flag(_ key: String, _ help: String) throws(SettingsError) -> Bool {
    note(key, accepted: "true or false", default: "false", help, isFlag: true)
    guard let given = given[key] else { return false }
    let words = ["true": true, "yes": true, "1": true, "false": false, "no": false, "0": false]
    guard let value = words[given.text.lowercased()] else {
      throw SettingsError(description: "\(given.name) is \"\(given.text)\"; it must be true or false")
    }
    return value
  }

  /// One of a few words.
  /// - `defaultText`: what the default is called where it is found at the start.
  mutating func choice<Value: RawRepresentable<String> & CaseIterable>(
    _ key: String, default defaultValue: Value, called defaultText: String? = nil, _ help: String
  ) throws(SettingsError) -> Value {
    let known = Value.allCases.map(\.rawValue).joined(separator: ", ")
    note(key, accepted: known, default: defaultText ?? defaultValue.rawValue, help)
    guard let given = given[key] else { return defaultValue }
    guard let value = Value(rawValue: given.text) else {
      throw SettingsError(description: "\(given.name) is \"\(given.text)\"; it must be one of \(known)")
    }
    return value
  }

  /// Any text.
  /// - `default`: `nil` for none, which an empty text also stands for.
  /// - `defaultText`: what the default is called where it is found at the start.
  mutating func text(
    _ key: String, default defaultValue: String?, called defaultText: String? = nil, _ accepted: String,
    completion: CompletionKind = .default, _ help: String
  ) -> String? {
    note(key, accepted: accepted, default: defaultText ?? defaultValue ?? "none", help, completion: completion)
    let text = given[key]?.text ?? defaultValue
    return text?.isEmpty ?? true ? nil : text
  }

  /// The path of a file without which more callers would be served.
  ///
  /// An empty text, such as of a variable that was not set, is an error.
  mutating func securityFile(_ key: String, _ help: String) throws(SettingsError) -> FilePath? {
    note(key, accepted: "file", default: "none", help, completion: .file())
    guard let given = given[key] else { return nil }
    if given.text.isEmpty { throw SettingsError(description: "\(given.name) is empty; name a file, or remove it") }
    return FilePath(given.text)
  }

  func isGiven(_ key: String) -> Bool { given[key] != nil }

  /// The error of a text that is read but cannot be used.
  func error(_ key: String, _ problem: String) -> SettingsError {
    let given = given[key]
    return SettingsError(description: "\(given?.name ?? key) is \"\(given?.text ?? "")\"; \(problem)")
  }

  private static func integer(_ given: Given, in range: ClosedRange<Int>) throws(SettingsError) -> Int {
    guard let value = Int(given.text) else {
      throw SettingsError(
        description: "\(given.name) is \"\(given.text)\"; it must be a whole number, \(text(range))")
    }
    guard range.contains(value) else {
      throw SettingsError(
        description: "\(given.name) is \(value); it must be between \(range.lowerBound) and \(range.upperBound)")
    }
    return value
  }

  private static func text(_ range: ClosedRange<Int>) -> String {
    range.upperBound == .max ? "\(range.lowerBound) or more" : "\(range.lowerBound) to \(range.upperBound)"
  }

  private mutating func note(
    _ key: String, unit: String = "", accepted: String, default defaultText: String, _ help: String,
    isFlag: Bool = false, completion: CompletionKind = .default
  ) {
    rows.append(
      SettingRow(
        key: key, unit: unit, accepted: accepted, defaultText: defaultText, help: help, isFlag: isFlag,
        completion: completion))
  }
}
