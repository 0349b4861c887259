internal import FoundationEssentials
internal import SystemPackage

/// The images of a run that failed, as a manifest of the next one.
struct BatchFailures {
  private static let name = "failures.jsonl"

  private struct Row: Encodable {
    var path: String
    var preset: String?
    var overrides: JSONValue?
    var options: [String: String]?
    var output: String
    var reason: String?
    var error: String?
  }

  let path: FilePath
  private var lines: [String] = []

  /// - `directory`: that of the results.
  init(directory: FilePath) { path = directory.appending(BatchJournal.folder).appending(Self.name) }

  /// Adds an image if one of its results failed.
  mutating func add(_ image: BatchImage, _ results: [ResultLine]) throws {
    guard let failed = results.first(where: { $0.status == .failed }) else { return }
    let overrides = image.row?.overrides.flatMap { try? JSONDecoder().decode(JSONValue.self, from: Data($0.utf8)) }
    let options = image.row?.options ?? [:]
    let row = Row(
      path: FileSystem.canonical(image.path).text, preset: image.row?.preset, overrides: overrides,
      options: options.isEmpty ? nil : options, output: image.place.text, reason: failed.reason,
      error: failed.error?.message)
    lines.append(try JSONText.line(row))
  }

  /// Writes the file, or removes that of an earlier run if nothing failed.
  func write() throws {
    if lines.isEmpty {
      FileSystem.remove(path)
      return
    }
    let file = try PartialFile(path)
    for line in lines { try file.write(Array((line + "\n").utf8).span.bytes) }
    try file.complete(isDurable: true)
  }
}
