internal import Fields
internal import ImageCodecs
internal import SystemPackage
internal import Yams

/// Finds the settings that the command line, the environment and a file give.
///
/// An option wins over the environment, which wins over the file. A name that is no setting's is an error.
struct SettingLookup {
  private let rows: [SettingRow]
  private(set) var given: [String: SettingSource.Given] = [:]

  init(rows: [SettingRow]) { self.rows = rows }

  /// Adds the settings of a YAML file.
  mutating func add(fileAt path: String) throws(SettingsError) {
    try add(file: try FileSystem.text(of: FilePath(path), option: "--config"), name: path)
  }

  /// - `text`: of the file, in YAML; `name` is the file's, for errors.
  private mutating func add(file text: String, name: String) throws(SettingsError) {
    let root: Node?
    do { root = try Yams.compose(yaml: text) } catch {
      throw SettingsError(description: "\(name) is not YAML: \(error)")
    }
    guard let root else { return }
    guard let mapping = root.mapping else {
      throw SettingsError(description: "\(name) must be a mapping of settings to values, as in port: 50051")
    }
    for (key, value) in mapping {
      let place = "\(key.string ?? "") in \(name)" + (key.mark.map { ":\($0.line)" } ?? "")
      guard let row = rows.first(where: { $0.key == key.string }) else {
        throw unknown(key.string ?? "", place, spelling: \.key)
      }
      guard let scalar = value.scalar, value.tag != Tag(.null) else {
        throw SettingsError(description: "\(place) must have one value: \(row.accepted)")
      }
      given[row.key] = .init(name: place, text: scalar.string)
    }
  }

  /// - `environment`: the process' variables; `LOG_LEVEL` is read besides those with the worker's own prefix.
  mutating func add(environment: [String: String]) throws(SettingsError) {
    if let level = environment["LOG_LEVEL"], !level.isEmpty {
      given["logLevel"] = .init(name: "LOG_LEVEL", text: level.lowercased())
    }
    // In a fixed order, so that the same environment always gives the same error.
    for (name, value) in environment.sorted(by: { $0.key < $1.key }) {
      guard name.hasPrefix(SettingRow.variablePrefix), !Self.isServiceLink(name, value) else { continue }
      if name == InstructionSet.variable {
        guard InstructionSet.isValid(value) else {
          throw SettingsError(description: "\(name) is \"\(value)\"; it must be \(InstructionSet.accepted)")
        }
        continue
      }
      guard let row = rows.first(where: { $0.variable == name }) else {
        throw unknown(name, name, spelling: \.variable)
      }
      given[row.key] = .init(name: name, text: value)
    }
  }

  /// - `options`: values by the options' names, of which the parser knows each.
  mutating func add(options: OptionValues) {
    for row in rows {
      if let text = options[row.option]?.last { given[row.key] = .init(name: "--\(row.option)", text: text) }
    }
  }

  private func unknown(_ name: String, _ place: String, spelling: KeyPath<SettingRow, String>) -> SettingsError {
    let names = rows.map { $0[keyPath: spelling] }
    if name == SettingRow.variablePrefix + "CONFIG" {
      return SettingsError(description: "\(name) is not a setting; name the file with --config")
    }
    let nearest = names.min { NearestName.distance($0, name) < NearestName.distance($1, name) } ?? ""
    return SettingsError(description: "\(place) is not a setting; did you mean \(nearest)?")
  }

  /// Whether Kubernetes or Docker sets the variable to tell where a service of the name `image-worker` is.
  static func isServiceLink(_ name: String, _ value: String) -> Bool {
    ["tcp://", "udp://", "sctp://"].contains { value.hasPrefix($0) }
      || ["_SERVICE_HOST", "_SERVICE_PORT", "_TCP_", "_UDP_", "_SCTP_"].contains { name.contains($0) }
  }
}
