internal import ArgumentParser

/// One setting of `serve`: its row in the tables.
struct SettingRow: Sendable {
  /// The name in a configuration file, in camel case.
  let key: String
  /// Of the value; empty where there is none.
  let unit: String
  /// As in "1 to 1024".
  let accepted: String
  let defaultText: String
  /// One or more sentences in the imperative mood.
  let help: String
  let isFlag: Bool
  let completion: CompletionKind

  /// The option without its dashes, as in `memory-limit-mib`.
  var option: String { Self.words(key).joined(separator: "-") }

  /// The environment's name, as in `IMAGE_WORKER_MEMORY_LIMIT_MIB`.
  var variable: String { Self.variablePrefix + Self.words(key).joined(separator: "_").uppercased() }

  static let variablePrefix = "IMAGE_WORKER_"

  /// The words of a name in camel case, in lower case.
  static func words(_ key: String) -> [String] {
    key.reduce(into: [""]) { words, letter in
      if letter.isUppercase { words.append("") }
      words[words.count - 1] += letter.lowercased()
    }
  }

  /// The row of the table in the article Deploying.
  var markdown: String {
    let accepted = [unit, accepted].filter { !$0.isEmpty }.joined(separator: ", ")
    return "| `--\(option)` | `\(variable)` | `\(key)` | \(accepted) | \(defaultText) | \(help) |"
  }
}

/// The settings as options of `serve`.
enum SettingOptions: OptionTable {
  static let options = list(defaults: [:])

  /// - `defaults`: the texts of defaults that differ from those of `serve`, by the settings' keys.
  static func list(defaults: [String: String]) -> [TableOption] {
    Settings.rows.map { row in
      let details = [row.unit, row.accepted].filter { !$0.isEmpty }.joined(separator: ", ")
      return TableOption(
        name: row.option, kind: row.isFlag ? .flag : .value(name: row.unit.isEmpty ? "value" : row.unit),
        help: "\(row.help)" + (row.isFlag ? "" : " (\(details))")
          + " Default: \(defaults[row.key] ?? row.defaultText).",
        completion: row.completion)
    }
  }

  // Values are read together with those of the environment and the file.
  static func validate(_ values: OptionValues) throws {}
}
