package import ImagePipeline
internal import SwiftProtobuf
internal import WorkerProtocol
internal import Yams

/// The presets of a YAML file.
///
/// One key, `presets`, with a mapping of names to the fields of `ProcessingConfiguration` as the wire contract spells
/// them, and a `description`:
///
///     presets:
///       card:
///         description: Cards in lists of articles.
///         max_width: 640
///         preferred_format: webp
///         filters:
///           - {name: sharpen, intensity: 0.5, parameters: {radius: 0.8}}
///
/// Values of enums are written short, as in `fit` for `RESIZE_MODE_FIT`. A filter without an intensity has it in full.
package struct PresetFile: Sendable {
  /// In the file's order; names are unique.
  package let presets: [Preset]

  /// Reads and checks the file's text.
  ///
  /// Each preset must be usable as it stands. Errors call the file `name`.
  /// - Throws: `PresetFileError` naming the line and the field of the first thing that is wrong.
  package init(yaml: String, name: String) throws(PresetFileError) {
    do {
      presets = try Self.presets(try Self.compose(yaml), schema: .shared)
    } catch let problem as PresetProblem {
      throw PresetFileError(file: name, problem)
    } catch {
      throw PresetFileError(file: name, PresetProblem("the file cannot be read: \(error)", line: nil))
    }
  }

  private static func compose(_ yaml: String) throws -> Node {
    do {
      guard let root = try Yams.compose(yaml: yaml) else { throw PresetProblem("the file is empty", line: 1) }
      return root
    } catch let error as YamlError {
      throw PresetProblem(error)
    }
  }

  private static func presets(_ root: Node, schema: ContractSchema) throws -> [Preset] {
    let top = try PresetReader.mapping(root, path: "the file")
    for (key, _) in top where key.string != "presets" {
      throw PresetProblem("is unknown; the only key is presets", field: key.string ?? "", line: key.mark?.line)
    }
    guard let (_, value) = top.first else { throw PresetProblem("is missing", field: "presets", line: 1) }
    return try PresetReader.mapping(value, path: "presets").map { key, body in
      var reader = PresetReader(schema: schema)
      return try reader.preset(key: key, body: body)
    }
  }
}

/// A file of presets that can't be used, and where.
package struct PresetFileError: Error, Sendable, CustomStringConvertible {
  /// As the user named it.
  package let file: String
  /// Counted from 1; `nil` when the problem is no line's.
  package let line: Int?
  /// As in `presets.card.max_width`; empty when the problem is no field's.
  package let field: String
  /// The problem, as a clause.
  package let message: String

  init(file: String, _ problem: PresetProblem) {
    (self.file, line, field, message) = (file, problem.line, problem.field, problem.message)
  }

  package var description: String {
    "\(file):\(line.map { "\($0):" } ?? "") \(field.isEmpty ? "" : "\(field): ")\(message)"
  }
}

/// A problem of a file of presets, before the file is named.
struct PresetProblem: Error {
  var message: String
  var field = ""
  var line: Int?

  init(_ message: String, field: String = "", line: Int?) {
    (self.message, self.field, self.line) = (message, field, line)
  }

  init(_ error: YamlError) {
    switch error {
    case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
      .composer(_, let problem, let mark, _):
      self.init(problem, line: mark.line)
    case .duplicatedKeysInMapping(let keys, let context):
      let names = keys.sorted().joined(separator: ", ")
      self.init("a mapping contains a key twice: \(names)", line: context.mark.line)
    default: self.init("\(error)", line: nil)
    }
  }
}
