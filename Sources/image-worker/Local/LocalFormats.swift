internal import ImageCodecs
internal import ImagePipeline
internal import SystemPackage

/// The formats by the extensions of files.
enum LocalFormats {
  /// The extensions of image files, in lower case.
  private static let extensions = Set(
    ImageFormat.allCases.filter { $0 != .raw }.map(\.rawValue)
      + ["jpg", "jpe", "jfif", "apng", "dib", "tif", "heif", "hif", "pbm", "pgm", "ppm", "pam", "jp2", "j2k", "cur"])

  /// Whether a file's name is that of an image.
  static func isImageName(_ path: FilePath) -> Bool {
    path.extension.map { extensions.contains($0.lowercased()) } ?? false
  }

  /// Whether a file's name is that of a result.
  static func isResultName(_ path: FilePath) -> Bool { isImageName(path) || outputFormat(of: path) == .raw }

  /// The format that a result's name requests; `nil` for one that results cannot have.
  static func outputFormat(of path: FilePath) -> OutputFormat? {
    guard let name = path.extension?.lowercased() else { return nil }
    return OutputFormat(rawValue: name) ?? OutputFormat.synonyms[name]
  }

  /// The extension of a result's file, by the format that a worker names.
  /// - Throws: `RemoteError` unless results can have this format: the name becomes a part of a path.
  static func fileExtension(of format: String) throws(RemoteError) -> String {
    guard let output = ImageFormat(rawValue: format)?.traits.output else { throw .unknownFormat(format) }
    return output.fileExtension
  }
}
