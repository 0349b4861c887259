internal import Fields
internal import ImagePipeline
internal import WorkerService

/// The results that the rows of a manifest request, read once for all rows with the same presets and overrides.
struct BatchRequests {
  private struct Key: Hashable {
    var preset: String?
    var overrides: String?
    var options: [String: String]
  }

  private let results: ResultOptions
  private let catalog: PresetCatalog
  private let isRemote: Bool
  private var known: [Key: RequestedResults] = [:]
  /// Of all rows, whose overlays are mostly the same.
  private let overlays = OverlayCache()

  init(_ results: ResultOptions, _ catalog: PresetCatalog, isRemote: Bool) {
    self.results = results
    self.catalog = catalog
    self.isRemote = isRemote
  }

  /// Returns the results of a row's image; `nil` for those that are requested of all.
  mutating func requested(of row: BatchManifest.Row) throws -> RequestedResults? {
    let key = Key(preset: row.preset, overrides: row.overrides, options: row.options)
    if key.preset == nil, key.overrides == nil, key.options.isEmpty { return nil }
    if let requested = known[key] { return requested }
    let overrides = try Self.fields(row.overrides).overridden(by: try Self.options(row.options))
    var requested = try results.requested(
      catalog, ownPreset: row.preset, ownOverrides: overrides, isRemote: isRemote)
    if !requested.auxiliary.isEmpty { requested.auxiliary.cache = overlays }
    known[key] = requested
    return requested
  }

  /// The fields of a JSON object with the names of the contract.
  private static func fields(_ json: String?) throws -> ProcessingConfiguration {
    guard let json else { return ProcessingConfiguration() }
    do {
      return try PresetFile(yaml: "presets: {overrides: \(json)}", name: "").presets.first?.configuration
        ?? ProcessingConfiguration()
    } catch {
      let field = error.field.hasPrefix("presets.") ? String(error.field.dropFirst("presets.".count)) : "overrides"
      // Most messages begin with the field.
      let name = field.dropFirst("overrides.".count) + " "
      let message = error.message.hasPrefix(name) ? error.message.dropFirst(name.count) : error.message[...]
      throw ManifestProblem("\(field) \(message)")
    }
  }

  /// Checks a column of CSV; one without a name may have no values.
  static func check(column: String) throws(ManifestProblem) {
    let names = optionNames + ["path", "preset", "output", "overrides"]
    guard !column.isEmpty, !(names + ["reason", "error"]).contains(option(column)) else { return }
    throw ManifestProblem(
      "the column \"\(column)\" is unknown; it must be path, preset, output, overrides or an option"
        + NearestName.question(option(column), in: names))
  }

  private static let optionNames = ConfigurationTable.fields.map(\.name)

  /// The name of an option, which a manifest may spell as a field.
  private static func option(_ name: String) -> String { String(name.map { $0 == "_" ? "-" : $0 }) }

  private static func options(_ options: [String: String]) throws -> ProcessingConfiguration {
    var values: OptionValues = [:]
    for (given, value) in options {
      let name = Self.option(given)
      guard optionNames.contains(name) else {
        throw ManifestProblem("the option \"\(given)\" is unknown" + NearestName.question(name, in: optionNames))
      }
      guard values.updateValue([value], forKey: name) == nil else {
        throw ManifestProblem("the option \(name) is repeated; write it with - or with _, not with both")
      }
    }
    return try ConfigurationTable.configuration(values)
  }
}
