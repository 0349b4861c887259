internal import ArgumentParser
internal import ImagePipeline
internal import SystemPackage

/// The options by which `batch` finds its images.
struct InputOptions: ParsableArguments {
  @Argument(help: "Set the images and folders of images.", completion: .file())
  var inputs: [String] = []
  @Option(
    help: ArgumentHelp("Read more inputs from a file, one per line; - reads standard input.", valueName: "file"),
    completion: .file())
  var list: String?
  @Flag(help: "Inputs in --list end with NUL, as find -print0 writes them.")
  var null = false
  @Option(
    help: ArgumentHelp(
      "Read images with presets, overrides and output names of their own from a CSV file or JSON lines; - reads "
        + "standard input.", valueName: "file"),
    completion: .file())
  var manifest: String?
  @Option(
    help: ArgumentHelp(
      "Write the results of images that are named, not found in folders, under their paths below this directory.",
      valueName: "directory"),
    completion: .directory)
  var root: String?

  func validate() throws {
    for input in inputs { if let problem = URLArgument.problem(input) { throw ValidationError("\(problem).") } }
    if inputs.isEmpty, list == nil, manifest == nil {
      throw ValidationError("Specify images or folders, or use --list or --manifest.")
    }
    if null, list == nil { throw ValidationError("--null needs --list.") }
    if list == "-", manifest == "-" { throw ValidationError("--list and --manifest cannot both be standard input.") }
  }

  /// All inputs, those of the manifest with what it requests.
  func read(_ requests: inout BatchRequests) throws -> [BatchInput] {
    let listed = try list.map { try BatchInputs.entries(of: $0, endsWithNull: null) } ?? []
    if let problem = listed.lazy.compactMap(URLArgument.problem).first { throw ValidationError("--list: \(problem).") }
    if listed.contains(where: { $0.utf8.contains(0) }) {
      throw ValidationError("--list has entries that end with NUL; add --null.")
    }
    let named = try (inputs + listed).map(FilePath.init(text:)).map { BatchInput(path: $0, output: try mirrored($0)) }
    guard let manifest else { return named }
    return try named
      + BatchManifest.rows(of: BatchInputs.bytes(of: manifest, option: "--manifest"), name: manifest).map { line, row in
        do {
          if let problem = URLArgument.problem(row.path) { throw ManifestProblem(problem) }
          let path = FilePath(text: row.path)
          return BatchInput(
            path: path, output: try row.place ?? mirrored(path), requested: try requests.requested(of: row), row: row)
        } catch { throw ManifestError(file: manifest, line: line, message: Self.message(of: error)) }
      }
  }

  /// The path below `--root`, without extension; `nil` for a folder and without that option.
  private func mirrored(_ path: FilePath) throws -> FilePath? {
    guard let root, FileSystem.kind(of: path) != .directory else { return nil }
    // A link is the image, wherever it leads.
    var place = FileSystem.canonicalPlace(path)
    guard place.removePrefix(FileSystem.canonical(FilePath(text: root))) else {
      // What is not there fails by itself.
      if FileSystem.kind(of: path) == .missing { return nil }
      throw ValidationError("\(path) is not below --root \(root).")
    }
    place.extension = nil
    return place
  }

  private static func message(of error: any Error) -> String {
    (error as? PipelineError)?.optionMessage ?? (error as? ValidationError)?.message ?? "\(error)"
  }
}
