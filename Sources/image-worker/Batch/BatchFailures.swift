internal import FoundationEssentials
internal import SystemPackage

/// The images of a run that failed, as a manifest of the next one.
struct BatchFailures {
  private static let name = "failures.jsonl"

  private struct Row: Codable {
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
  /// The images of an earlier run that have not ended in this one, and their lines, by their `key`.
  private var others: [[UInt8]: (image: String, line: String)] = [:]
  /// The images that have ended in this run.
  private var ended: Set<FilePath> = []

  /// - `directory`: that of the results.
  init(directory: FilePath) throws {
    path = directory.appending(BatchJournal.folder).appending(Self.name)
    guard FileSystem.kind(of: path) == .file else { return }
    let file = try FileDescriptor.open(path, .readOnly)
    try file.closeAfter {
      _ = try FileSystem.readLines(of: file, maxByteCount: BatchManifest.maxLineByteCount) { line in
        guard let row = try? JSONDecoder().decode(Row.self, from: Data(line)) else { return }
        others[Self.key(row.path, row.output)] = (row.path, String(decoding: line, as: UTF8.self))
      }
    }
  }

  /// Notes an image that has ended, and adds it if one of its results failed.
  mutating func add(_ image: BatchImage, _ results: [ResultLine]) throws {
    let (path, output) = (FileSystem.canonical(image.path).text, BatchManifest.Row.output(of: image.place))
    others[Self.key(path, output)] = nil
    ended.insert(FilePath(text: path))
    // A manifest lists no folders.
    if case .unreadableFolder? = image.problem { return }
    guard let failed = results.first(where: { $0.status == .failed }) else { return }
    let overrides = image.row?.overrides.flatMap { try? JSONDecoder().decode(JSONValue.self, from: Data($0.utf8)) }
    let options = image.row?.options ?? [:]
    let row = Row(
      path: path, preset: image.row?.preset, overrides: overrides,
      options: options.isEmpty ? nil : options, output: output, reason: failed.reason, error: failed.error?.message)
    lines.append(try JSONText.line(row))
  }

  /// Writes the file, or removes that of an earlier run if nothing has failed.
  ///
  /// Images of earlier runs remain in it until they end in another one or are there no more.
  /// - `isComplete`: whether the run reached all of its images, so that it knows all results of each.
  func write(isComplete: Bool) throws {
    let left = others.values.filter { image, _ in
      !(isComplete && ended.contains(FilePath(text: image))) && FileSystem.isThere(FilePath(text: image))
    }
    let lines = lines + left.map(\.line).sorted()
    if lines.isEmpty {
      FileSystem.remove(path)
      return
    }
    let file = try PartialFile(path)
    for line in lines { try file.write(Array((line + "\n").utf8).span.bytes) }
    try file.complete(isDurable: true)
  }

  /// Returns a name of an image and the place of its results, of which neither contains NUL.
  private static func key(_ path: String, _ output: String) -> [UInt8] { Array("\(path)\0\(output)".utf8) }
}
