internal import FoundationEssentials
internal import LibC
internal import SystemPackage

/// An image or a folder, as the user names it.
struct BatchInput: Sendable {
  var path: FilePath
  /// The results' path below the output directory, without suffix and extension; `nil` for that of the image.
  var output: FilePath?
  /// The results of this image alone; `nil` for those that are requested of all.
  var requested: RequestedResults?
  /// The row of a manifest; `nil` if the image comes from elsewhere.
  var row: BatchManifest.Row?
}

struct BatchImage: Sendable {
  var path: FilePath
  /// The result's folder below the output directory; empty for that directory itself.
  var folder: FilePath
  /// The results' name as text of a path, without suffix and extension.
  var name: String
  /// Found in a folder, not named.
  var isFound: Bool
  /// Why it is not begun.
  var problem: BatchProblem?
  /// The results of this image alone; `nil` for those that are requested of all.
  var requested: RequestedResults?
  /// The row of a manifest; `nil` if the image comes from elsewhere.
  var row: BatchManifest.Row?

  /// The results' path below the output directory, without suffix and extension.
  var place: FilePath { folder.appending(text: name) }
  /// Whether a file of unknown contents is left out: it was found in a folder, and its name is not that of an image.
  var mayBeNoImage: Bool { isFound && !LocalFormats.isImageName(path) }
}

/// Why an image of a batch is not begun.
enum BatchProblem: Error, Sendable, CustomStringConvertible {
  /// A pipe, a socket or a device.
  case noRegularFile
  /// A folder that cannot be read, of those that were found.
  case unreadableFolder(reason: String)
  /// A folder, of which `process` takes none.
  case folder
  /// Its results would have the names of another image's.
  case nameTaken(by: FilePath)

  var description: String {
    switch self {
    case .noRegularFile: "not a regular file"
    case .unreadableFolder(let reason): "the folder cannot be read: \(reason)"
    case .folder: "is a folder; use image-worker batch for folders"
    case .nameTaken(let other): "its result would have the same name as the result of \(other)"
    }
  }
}

/// The images that a batch consists of.
enum BatchInputs {
  /// The entries of a list that are not empty; `-` is the standard input.
  /// - `endsWithNull`: whether entries end with NUL, not with a line end.
  static func entries(of path: String, endsWithNull: Bool) throws -> [String] {
    let bytes = try bytes(of: path, option: "--list")
    return (bytes.starts(with: byteOrderMark) ? bytes.dropFirst(byteOrderMark.count) : bytes).split {
      endsWithNull ? $0 == 0 : $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r")
    }
    .map { PathText.text(of: $0) }
  }

  /// The byte order mark of UTF-8, with which some programs begin a text.
  static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  /// The maximum size of a list or a manifest: some millions of paths, and less than what a device without end sends.
  private static let maxByteCount = 512 << 20

  /// The bytes of a file; `-` is the standard input.
  /// - `option`: the option that names the file.
  static func bytes(of path: String, option: String) throws -> Data {
    do {
      if path != "-" { return Data(try FileSystem.read(FilePath(text: path), limit: maxByteCount)) }
      var data = Data()
      while true {
        let part = try FileSystem.readPart(of: .standardInput, byteCount: 1 << 16)
        if part.isEmpty { return data }
        data += part
        if data.count > maxByteCount { throw Errno.fileTooLarge }
      }
    } catch Errno.fileTooLarge {
      throw FileError(option, path, "cannot be read", "it has more than \(maxByteCount >> 20) MiB; split it")
    } catch { throw FileError(option, path, "cannot be read", "\(error)") }
  }

  /// Every file that `inputs` name, and every file of the folders among them, in a fixed order, each once.
  ///
  /// Hidden files and what lies in `output` are left out. Symbolic links are followed, unless they lead nowhere, or from a
  /// folder back to one above it.
  /// - `suffixes`: what names of results have after the image's name.
  /// - Returns: the images, and the number of links that are not followed.
  /// - Throws: `BatchInputError` for a folder that is also the output directory, `FileError` for a named one that cannot
  ///   be read; one inside is an image with this problem.
  static func images(
    in inputs: [BatchInput], output: FilePath, suffixes: [String]
  ) throws -> (images: [BatchImage], skippedLinkCount: Int) {
    var images: [BatchImage] = []
    // Rows of a manifest may ask for several results of an image.
    var seen: [FilePath: Set<String>] = [:]
    var walk = FolderWalk(passingOver: FileSystem.Identity(of: output))
    func add(_ path: FilePath, _ input: BatchInput, folder: FilePath, isFound: Bool, _ kind: FileSystem.Kind) {
      let request = input.requested?.fingerprint ?? ""
      if input.row?.output == nil, !seen[FileSystem.canonicalPlace(path), default: []].insert(request).inserted {
        return
      }
      images.append(
        BatchImage(
          path: path, folder: input.output?.removingLastComponent() ?? folder,
          name: input.output?.nameText ?? path.stemText ?? "image", isFound: isFound,
          problem: kind == .other ? .noRegularFile : nil, requested: input.requested, row: input.row))
    }
    for input in inputs {
      let kind = FileSystem.kind(of: input.path)
      guard kind == .directory, input.output == nil else {
        add(input.path, input, folder: "", isFound: false, kind)
        continue
      }
      if walk.isResults(input.path) { throw BatchInputError(folder: input.path) }
      try walk.files(of: input.path) { add($0, input, folder: $1, isFound: true, $2) }
    }
    for (path, reason) in walk.unreadable {
      images.append(
        BatchImage(
          path: path, folder: "", name: path.nameText ?? "", isFound: true, problem: .unreadableFolder(reason: reason)))
    }
    return (settled(images, suffixes: suffixes), walk.skippedLinkCount)
  }

  /// The images with names under which no two of them have a result in common, whatever the results' formats are.
  ///
  /// Images whose results would have the same name, as those of a.jpg and a.png, keep their own extension in it; next to
  /// a.xmp, which may be no image, only a.xmp does. Where even that is not enough, as for x/a.jpg and y/a.jpg, the
  /// first one gets the name and the others are not begun.
  static func settled(_ images: [BatchImage], suffixes: [String]) -> [BatchImage] {
    var images = images
    while true {
      let places = users(images, suffixes)
      // Another extension sets no two images of the same name apart.
      let shared = Set(
        places.values.filter { users in Set(users.map { images[$0].path.nameText }).count > 1 }.joined())
      let renamed = shared.filter {
        images[$0].row?.output == nil && images[$0].name != images[$0].path.nameText
      }
      if renamed.isEmpty { break }
      let unlikely = renamed.filter { images[$0].mayBeNoImage }
      for index in unlikely.isEmpty ? renamed : unlikely {
        images[index].name = images[index].path.nameText ?? images[index].name
      }
    }
    for place in users(images, suffixes).values where place.count > 1 {
      for index in place.dropFirst() { images[index].problem = .nameTaken(by: images[place[0]].path) }
    }
    return images
  }

  /// The images that would write each result, without its extension.
  private static func users(_ images: [BatchImage], _ suffixes: [String]) -> [FilePath: [Int]] {
    var users: [FilePath: [Int]] = [:]
    for (index, image) in images.enumerated() where image.problem == nil {
      for suffix in suffixes { users[image.folder.appending(text: image.name + suffix), default: []].append(index) }
    }
    return users
  }
}

/// A folder whose results would lie among its images.
struct BatchInputError: Error, CustomStringConvertible {
  let folder: FilePath

  var description: String { "--out is \(folder), which is an input; name another directory" }
}
