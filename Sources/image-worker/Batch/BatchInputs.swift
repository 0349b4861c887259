internal import FoundationEssentials
internal import SystemPackage

/// One picture of a batch.
struct BatchPicture: Sendable {
  var path: FilePath
  /// The result's folder below the output directory; empty for that directory itself.
  var folder: FilePath
  /// The result's name, without its extension.
  var name: String
  /// Found in a folder, not named.
  var isFound: Bool
}

/// Which pictures a batch consists of.
enum BatchInputs {
  /// The lines of a file that are not empty; `-` is the standard input.
  static func lines(of path: String) throws -> [String] {
    // Any file can be read there by its name, a pipe included.
    let data = try Data(contentsOf: URL(filePath: path == "-" ? "/dev/stdin" : path))
    return String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
  }

  /// Every file that `inputs` name, and every file of the folders among them, in a fixed order, each once.
  ///
  /// Hidden files and what lies in `output` are passed over.
  static func pictures(in inputs: [FilePath], output: FilePath) throws -> [BatchPicture] {
    var pictures: [BatchPicture] = []
    var seen: Set<FilePath> = []
    let results = FileSystem.canonical(output)
    for input in inputs {
      guard FileSystem.isDirectory(input) else {
        if seen.insert(FileSystem.canonical(input)).inserted {
          pictures.append(BatchPicture(path: input, folder: "", name: input.stem ?? "picture", isFound: false))
        }
        continue
      }
      try walk(input, folder: "", passingOver: results) { path, folder in
        guard seen.insert(FileSystem.canonical(path)).inserted else { return }
        pictures.append(BatchPicture(path: path, folder: folder, name: path.stem ?? "picture", isFound: true))
      }
    }
    return distinct(pictures)
  }

  private static func walk(
    _ directory: FilePath, folder: FilePath, passingOver results: FilePath, _ body: (FilePath, FilePath) -> Void
  ) throws {
    if FileSystem.canonical(directory) == results { return }
    for name in try FileManager.default.contentsOfDirectory(atPath: directory.string).sorted() {
      let path = directory.appending(name)
      if name.hasPrefix(".") { continue }
      // A link to a folder may lead round in a circle.
      if FileSystem.isDirectory(path) {
        if !FileSystem.isLink(path) { try walk(path, folder: folder.appending(name), passingOver: results, body) }
      } else {
        body(path, folder)
      }
    }
  }

  /// Pictures whose results would have the same name, as a.jpg and a.png, keep their own extension in it.
  private static func distinct(_ pictures: [BatchPicture]) -> [BatchPicture] {
    let counts = Dictionary(pictures.map { ($0.folder.appending($0.name), 1) }, uniquingKeysWith: +)
    return pictures.map { picture in
      guard counts[picture.folder.appending(picture.name)] ?? 0 > 1 else { return picture }
      var picture = picture
      picture.name = picture.path.lastComponent?.string ?? picture.name
      return picture
    }
  }
}
