internal import ImagePipeline
internal import SystemPackage
internal import WorkerService

/// Where presets come from: a file, beside the built-in ones.
struct PresetSource {
  private static let maxByteCount = 1 << 20

  let path: FilePath

  /// The built-in presets and the file's, as the file is now.
  /// - Throws: `PresetFileError` for what the file says, `SettingsError` when it can't be read.
  func read() throws -> PresetCatalog {
    let bytes: [UInt8]
    do { bytes = try FileSystem.read(path, limit: Self.maxByteCount) } catch {
      throw SettingsError(description: "--presets \(path) cannot be read: \(error)")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw SettingsError(description: "--presets \(path) is not text in UTF-8")
    }
    return PresetCatalog().adding(try PresetFile(yaml: text, name: path.string).presets)
  }

  /// The built-in presets, with those of the file at `path` when there is one.
  static func catalog(path: String?) throws -> PresetCatalog {
    guard let path else { return PresetCatalog() }
    return try PresetSource(path: FilePath(path)).read()
  }
}
