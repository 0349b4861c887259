internal import ImagePipeline
internal import Logging
internal import SystemPackage
internal import WorkerService

/// A file of presets, in addition to the built-in ones.
struct PresetSource {
  let path: FilePath

  /// The built-in presets and the file's, as the file is now.
  /// - Throws: `PresetFileError` for the contents of the file, `SettingsError` when it can't be read.
  func read(isReload: Bool = false) throws -> PresetCatalog {
    let text = try FileSystem.text(of: path, option: "--presets", isReload: isReload)
    return PresetCatalog().adding(try PresetFile(yaml: text, name: path.string).presets)
  }

  /// The built-in presets, with those of the file at `path` when there is one.
  static func catalog(path: String?) throws -> PresetCatalog {
    guard let path else { return PresetCatalog() }
    return try PresetSource(path: FilePath(text: path)).read()
  }

  /// Reads the file again; one that can't be used leaves the presets as they are.
  func reload(_ store: Replaceable<PresetCatalog>, _ logger: Logger) {
    do {
      let catalog = try read(isReload: true)
      store.replace(with: catalog)
      logger.notice("presets reloaded", metadata: ["file": "\(path)", "presets": "\(catalog.presets.count)"])
    } catch {
      logger.error(
        "the presets file cannot be used; the previous presets stay in effect", metadata: ["error": "\(error)"])
    }
  }
}
