internal import ImagePipeline
internal import SystemPackage

/// A directory of fonts that texts use in addition to those of the system.
enum FontDirectory {
  static let option = "--fonts"

  /// Returns the path if fonts can be read from it.
  /// - Throws: an error that names the option.
  static func checked(_ path: String?) throws(SettingsError) -> String? {
    guard let path else { return nil }
    guard TextOverlay.isSupported else {
      throw SettingsError(description: "\(option) is \(path), but this build draws no texts; build it with Pango")
    }
    guard FileSystem.kind(of: FilePath(path)) == .directory else {
      throw SettingsError(description: "\(option) is \(path); it must be a directory")
    }
    return path
  }
}
