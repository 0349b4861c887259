internal import ArgumentParser
internal import ImagePipeline
internal import SystemPackage

/// Where the results of `process` and `batch` go.
enum ResultPlace: Sendable {
  /// To files in a directory, under the name of their image with the extension of their format.
  case directory(FilePath)
  /// To a file of this name and format.
  case file(FilePath, OutputFormat)
  case standardOutput

  /// The place that `--out` of `process` names.
  /// - `isSingle`: whether there is but one result.
  /// - Throws: `ValidationError` for a file that cannot be the result.
  init(_ out: String, isSingle: Bool) throws(ValidationError) {
    let path = FilePath(text: out)
    if out == StandardInput.name {
      self = .standardOutput
    } else if out.hasSuffix("/") || FileSystem.kind(of: path) == .directory || !LocalFormats.isResultName(path) {
      self = .directory(path)
      return
    } else if let format = LocalFormats.outputFormat(of: path) {
      self = .file(path, format)
    } else {
      throw ValidationError(
        "--out is \(out); results cannot have this format. Name a file that ends with .jpg, .png, .webp, .avif, .jxl, "
          + ".gif or .raw, or a directory.")
    }
    if !isSingle { throw ValidationError("--out is \(out), and there are several results; name a directory.") }
  }

  /// The format that the name requests.
  var format: OutputFormat? {
    switch self {
    case .directory, .standardOutput: nil
    case .file(_, let format): format
    }
  }
}

/// A result that is being written.
enum ResultFile {
  case partial(PartialFile)
  /// Bytes leave at once, also those of a result that fails later.
  case standardOutput

  init(_ path: FilePath, in place: ResultPlace) throws {
    switch place {
    case .directory, .file: self = .partial(try PartialFile(path))
    case .standardOutput: self = .standardOutput
    }
  }

  func write(_ bytes: RawSpan) throws {
    switch self {
    case .partial(let file): try file.write(bytes)
    case .standardOutput:
      do { try FileDescriptor.standardOutput.writeAll(bytes) } catch {
        throw FileError(nil, "standard output", "cannot be written", "\(error)")
      }
    }
  }

  /// - `isDurable`: a file that is there is whole even after the system broke down.
  /// - `path`: where the file goes.
  func complete(isDurable: Bool, at path: FilePath) throws {
    switch self {
    case .partial(let file): try file.complete(isDurable: isDurable, at: path)
    case .standardOutput: break
    }
  }
}
