internal import FoundationEssentials
internal import SystemPackage

/// A list of images with presets, overrides and names of their own.
///
/// JSON lines, or CSV with the same names in its first line. In CSV, other columns are options such as `max-width`.
enum BatchManifest {
  /// One image.
  struct Row: Sendable, Equatable {
    var path: String
    var preset: String?
    /// Fields of the contract as a JSON object, which is also YAML.
    var overrides: String?
    /// Options by their names, without dashes.
    var options: [String: String] = [:]
    /// The results' path below the output directory.
    var output: String?

    /// The results' path below the output directory, without the extension of an image.
    var place: FilePath? {
      get throws {
        guard let output else { return nil }
        var path = FilePath(text: output)
        let isBelow = path.isRelative && !path.components.contains { $0.kind != .regular } && !path.isEmpty
        guard isBelow else { throw ManifestProblem("output is \"\(output)\"; it must be a path below --out") }
        // It is replaced by that of the result's format.
        if LocalFormats.isImageName(path) { path.extension = nil }
        return path
      }
    }

    /// Returns the `output` of which `place` is the results' path.
    static func output(of place: FilePath) -> String {
      LocalFormats.isImageName(place) ? place.text + ".jpg" : place.text
    }

    /// The row, if files can have its names.
    func checked() throws -> Row {
      for (name, text) in [("path", path), ("output", output ?? "")] where text.utf8.contains(0) {
        throw ManifestProblem("\(name) contains U+0000, which no name of a file has")
      }
      return self
    }
  }

  /// The maximum size of a line, and of a record of CSV.
  static let maxLineByteCount = 1 << 20

  /// Reads the rows of a manifest.
  /// - Throws: `ManifestError` naming the line of the first thing that is wrong.
  static func rows(of data: Data, name: String) throws(ManifestError) -> [(line: Int, row: Row)] {
    // Spreadsheets begin CSV with a byte order mark.
    let mark = BatchInputs.byteOrderMark
    let data = data.starts(with: mark) ? data.dropFirst(mark.count) : data
    let lines = data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    let first = lines.firstIndex { line in line.contains { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\r") } }
    guard let first else { return [] }
    var line = first + 1
    do {
      if lines[first].first(where: { $0 != UInt8(ascii: " ") }) == UInt8(ascii: "{") {
        var rows: [(Int, Row)] = []
        for (index, text) in lines.enumerated() where !text.allSatisfy({ $0 == 32 || $0 == 13 }) {
          line = index + 1
          if text.count > maxLineByteCount { throw ManifestProblem("is longer than \(maxLineByteCount) bytes") }
          rows.append((line, try row(json: text).checked()))
        }
        return rows
      }
      let table = try CSV.records(
        String(decoding: data, as: UTF8.self), maxByteCount: maxLineByteCount, failingLine: &line)
      guard let header = table.first else { return [] }
      guard header.fields.contains("path") else {
        throw ManifestProblem("the first line must be a JSON object, or the columns of CSV, with path among them")
      }
      for (index, column) in header.fields.enumerated() {
        if header.fields[..<index].contains(column) { throw ManifestProblem("the column \"\(column)\" is repeated") }
        try BatchRequests.check(column: column)
      }
      return try table.dropFirst().map { record in
        line = record.line
        return (record.line, try row(record.fields, columns: header.fields).checked())
      }
    } catch { throw ManifestError(file: name, line: line, message: "\(error)") }
  }

  private static func row(json: Data) throws -> Row {
    guard case .object(let fields)? = try? JSONDecoder().decode(JSONValue.self, from: json) else {
      throw ManifestProblem("must be a JSON object")
    }
    if let key = JSONValue.repeatedKey(in: json) { throw ManifestProblem("the key \"\(key)\" is repeated") }
    var row = Row(path: "")
    for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
      switch (name, value) {
      case (_, .null), ("reason", _), ("error", _): break
      case ("path", .text(let text)): row.path = text
      case ("preset", .text(let text)): row.preset = text
      case ("output", .text(let text)): row.output = text
      case ("overrides", .object): row.overrides = try value.text
      case ("options", .object(let options)):
        row.options = try options.mapValues { option in
          guard case .text(let text) = option else { throw ManifestProblem("the values of options must be text") }
          return text
        }
      case ("path", _), ("preset", _), ("output", _): throw ManifestProblem("\(name) must be text")
      case ("overrides", _), ("options", _): throw ManifestProblem("\(name) must be a JSON object")
      default:
        throw ManifestProblem("\(name) is unknown; it must be one of path, preset, overrides, options and output")
      }
    }
    if row.path.isEmpty { throw ManifestProblem("path is missing") }
    return row
  }

  private static func row(_ fields: [String], columns: [String]) throws -> Row {
    guard fields.count == columns.count else {
      throw ManifestProblem("has \(fields.count) fields; the first line has \(columns.count)")
    }
    var row = Row(path: "")
    for (column, value) in zip(columns, fields) where !value.isEmpty {
      switch column {
      case "path": row.path = value
      case "preset": row.preset = value
      case "output": row.output = value
      case "overrides":
        let json = Data(value.utf8)
        guard let fields = try? JSONDecoder().decode(JSONValue.self, from: json), case .object = fields else {
          throw ManifestProblem("overrides must be a JSON object")
        }
        if let key = JSONValue.repeatedKey(in: json) { throw ManifestProblem("the key \"\(key)\" is repeated") }
        row.overrides = try fields.text
      case "reason", "error": break
      default: row.options[column] = value
      }
    }
    if row.path.isEmpty { throw ManifestProblem("path is empty") }
    return row
  }
}

/// A problem of a line of a manifest.
struct ManifestProblem: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// A manifest that cannot be used, and where.
struct ManifestError: Error, CustomStringConvertible {
  let file: String
  let line: Int
  let message: String

  var description: String { "--manifest \(file):\(line): \(message)" + (message.hasSuffix("?") ? "" : ".") }
}

enum JSONValue: Codable, Sendable, Equatable {
  case null
  case flag(Bool)
  case integer(Int64)
  case number(Double)
  case text(String)
  case array([JSONValue])
  case object([String: JSONValue])

  init(from decoder: any Swift.Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let flag = try? container.decode(Bool.self) {
      self = .flag(flag)
    } else if let integer = try? container.decode(Int64.self) {
      self = .integer(integer)
    } else if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let array = try? container.decode([JSONValue].self) {
      self = .array(array)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }

  func encode(to encoder: any Swift.Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .flag(let flag): try container.encode(flag)
    case .integer(let integer): try container.encode(integer)
    case .number(let number): try container.encode(number)
    case .text(let text): try container.encode(text)
    case .array(let array): try container.encode(array)
    case .object(let object): try container.encode(object)
    }
  }

  /// Returns the first key that an object in valid JSON has twice; a decoder takes one of its values.
  static func repeatedKey(in json: Data) -> String? {
    var (rest, keys) = ([UInt8](json)[...], [Set<String>]())
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "{"): keys.append([])
      case UInt8(ascii: "}"): keys.removeLast()
      case UInt8(ascii: "\""):
        let start = rest.startIndex
        while let next = rest.popFirst(), next != UInt8(ascii: "\"") {
          if next == UInt8(ascii: "\\") { rest.removeFirst() }
        }
        let quoted = json[json.startIndex + start - 1..<json.startIndex + rest.startIndex]
        let isKey = rest.first { ![9, 10, 13, 32].contains($0) } == UInt8(ascii: ":")
        guard isKey, let key = try? JSONDecoder().decode(String.self, from: quoted) else { continue }
        if !keys[keys.count - 1].insert(key).inserted { return key }
      default: break
      }
    }
    return nil
  }

  /// The value as one line of JSON, equal for equal values.
  var text: String {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return String(decoding: try encoder.encode(self), as: UTF8.self)
    }
  }
}
