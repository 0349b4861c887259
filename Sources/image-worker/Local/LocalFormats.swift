internal import ImageCodecs

/// What this program knows of formats by their names.
enum LocalFormats {
  /// The extension of a format's files; the name of a format that this program does not know.
  static func fileExtension(of format: String) -> String {
    ImageFormat(rawValue: format)?.traits.output?.fileExtension ?? format
  }
}
