internal import ArgumentParser
internal import Fields
internal import ImagePipeline
internal import WorkerService

/// One result of each image.
struct RequestedResult: Sendable {
  /// Its rendition's name; empty where there is but one result.
  var id: String
  var configuration: ProcessingConfiguration
  /// The preset that a worker is asked for; empty for its default.
  var preset = ""
  /// The fields that a worker is asked for, in place of those of the preset.
  var overrides = ProcessingConfiguration()

  /// The end of its file's name, after the image's name.
  var suffix: String { id.isEmpty ? "" : "-\(id)" }
}

/// The results that `process` and `batch` produce of each image.
struct RequestedResults: Sendable {
  /// At least one.
  var results: [RequestedResult]
  /// Whether a preview is written before the result.
  var hasPreview = false
  /// The images that overlays name.
  var auxiliary = AuxiliaryImages()
  /// The limits of an image that this process works on.
  var limits = ImageLimits()

  static let previewSuffix = "-preview"

  /// A hash of everything that the results depend on, other than the image.
  var fingerprint: String {
    let parts = results.map { result -> FieldValue in
      .list([.word(result.id), .word(result.preset), result.overrides.fieldValue, result.configuration.fieldValue])
    }
    let faces = results.contains { $0.configuration.findsFaces } ? [FieldValue.integer(FaceDetection.identity)] : []
    let request = FieldValue.list([.integer(ResultVersion.current), .flag(hasPreview)] + parts + overlayParts + faces)
    // FNV-1a.
    let hash = request.canonicalBytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    return String(hash, radix: 16)
  }

  /// The names and digests of the images that overlays name.
  private var overlayParts: [FieldValue] {
    auxiliary.all.map { image in
      FieldValue.list([FieldValue.word(image.name)] + image.digest.map { FieldValue.integer(UInt64($0)) })
    }
  }

  /// The presets that workers are asked for by name and this program does not have.
  var foreignPresets: Set<String> {
    Set(results.map(\.preset)).subtracting(Preset.builtIn.map(\.name)).subtracting([""])
  }

  /// All that names of result files end with, without their extensions.
  var suffixes: [String] { results.map(\.suffix) + (hasPreview ? [Self.previewSuffix] : []) }
}

/// The options by which a command chooses a preset.
struct PresetOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Start from this preset: \(Preset.builtIn.map(\.name).joined(separator: ", ")), or one of --presets.",
      valueName: "name"))
  var preset = Preset.defaultName
  @Option(
    help: ArgumentHelp(
      "Read presets from a YAML file, in addition to the built-in ones, which it may override.", valueName: "file"),
    completion: .file())
  var presets: String?
  @Option(
    help: ArgumentHelp(
      "Read images that overlays name from this directory; the names are those of the files, without extension.",
      valueName: "directory"),
    completion: .directory)
  var overlays: String?
}

/// The options by which `process` and `batch` choose how this process works on images.
struct LocalWorkOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "\(FaceDetectorFile.help) Default: \(FaceDetectorFile.defaultText).", valueName: "file"), completion: .file())
  var faceDetector: String?
  @Option(
    name: .customLong("image-memory-limit-mib"),
    help: ArgumentHelp("Limit the memory of one image. Default: 384; of a HEIC or AVIF 640.", valueName: "MiB"))
  var imageMemoryLimit: Int?

  /// The option that is given; `nil` if there is none.
  var given: String? {
    if faceDetector != nil { return "--face-detector" }
    return imageMemoryLimit == nil ? nil : "--image-memory-limit-mib"
  }

  func validate() throws {
    if let faceDetector { try FaceDetectorFile.use(faceDetector) }
    if let imageMemoryLimit, !(1...1_048_576).contains(imageMemoryLimit) {
      throw ValidationError("--image-memory-limit-mib is \(imageMemoryLimit); it must be between 1 and 1048576.")
    }
  }
}

/// The options by which `process` and `batch` choose several results.
struct RenditionListOptions: ParsableArguments {
  @Option(
    name: .customLong("rendition"), parsing: .unconditionalSingleValue,
    help: ArgumentHelp(
      "Write a rendition of each image as IMAGE-NAME, instead of one result: a name and its options, as in "
        + "'small: --max-width 300 --format webp'. They override the command's. Repeat it for several renditions, which "
        + "are all made from one decode.", valueName: "name: options"))
  var renditions: [String] = []
  @Flag(help: "Write a small preview of each image, too, as IMAGE-preview.")
  var preview = false
}

/// The options by which `process` and `batch` choose results.
struct ResultOptions: ParsableArguments {
  @OptionGroup(title: "Presets and renditions")
  private var presetOptions: PresetOptions
  @OptionGroup(title: "Presets and renditions")
  private var renditionOptions: RenditionListOptions
  @OptionGroup(title: "Processing")
  private var localOptions: LocalWorkOptions
  @OptionGroup
  var overrides: ConfigurationOptions

  static let maxRenditionCount = 16

  /// An option that is given and does not concern workers; `nil` if there is none.
  var localOption: String? { localOptions.given }
  var presets: String? { presetOptions.presets }
  var renditions: [String] { renditionOptions.renditions }
  var preview: Bool { renditionOptions.preview }

  func validate() throws {
    if renditions.isEmpty { return }
    if preview {
      throw ValidationError("--preview cannot be combined with --rendition; request a small rendition instead.")
    }
    guard renditions.count <= Self.maxRenditionCount else {
      throw ValidationError(
        "--rendition is set \(renditions.count) times; at most \(Self.maxRenditionCount) are accepted.")
    }
    var ids: Set<String> = []
    for text in renditions {
      let (id, _) = try RenditionOptions.read(text)
      guard ids.insert(id).inserted else {
        throw ValidationError("--rendition \"\(id)\" is set twice; give each rendition its own name.")
      }
    }
  }

  /// - Throws: `ValidationError` for what cannot be read, `PipelineError` for what cannot be served, or what is wrong
  ///   with the file of presets.
  var requested: RequestedResults {
    get throws { try requested(PresetSource.catalog(path: presets)) }
  }

  /// Returns the results that are requested of one image.
  /// - `ownPreset`, `ownOverrides`: those of the image, which replace the command's.
  /// - `isRemote`: whether a worker may know presets that `catalog` does not.
  func requested(
    _ catalog: PresetCatalog, ownPreset: String? = nil,
    ownOverrides: ProcessingConfiguration = ProcessingConfiguration(), isRemote: Bool = false
  ) throws -> RequestedResults {
    let common = try overrides.configuration.overridden(by: ownOverrides)
    let preset = ownPreset ?? presetOptions.preset
    guard !renditions.isEmpty else {
      let result = try result("", catalog, preset, common, isRemote: isRemote)
      return RequestedResults(
        results: [result], hasPreview: preview, auxiliary: try auxiliary(of: [result], isRemote: isRemote),
        limits: limits)
    }
    let results = try renditions.map { text in
      let (id, options) = try RenditionOptions.read(text)
      do {
        let own = try options.overrides.configuration
        return try result(
          id, catalog, options.preset ?? preset, common.overridden(by: own), isRemote: isRemote)
      } catch var error as PipelineError {
        error.message = "--rendition \"\(id)\": \(error.message)"
        throw error
      }
    }
    return RequestedResults(
      results: results, auxiliary: try auxiliary(of: results, isRemote: isRemote), limits: limits)
  }

  private var limits: ImageLimits { ImageLimits(memory: localOptions.imageMemoryLimit.map { $0 << 20 }) }

  private func auxiliary(of results: [RequestedResult], isRemote: Bool) throws -> AuxiliaryImages {
    try OverlaySource.images(
      for: results.map(\.configuration), directory: presetOptions.overlays, isRemote: isRemote)
  }

  private func result(
    _ id: String, _ catalog: PresetCatalog, _ preset: String, _ overrides: ProcessingConfiguration, isRemote: Bool
  ) throws -> RequestedResult {
    let isKnown = catalog.presets.contains { $0.name == preset }
    guard isKnown || !isRemote else {
      return RequestedResult(id: id, configuration: overrides, preset: preset, overrides: overrides)
    }
    let overrides = overrides.withDefaultQuality(for: preset, in: catalog)
    let configuration = try Self.configuration(catalog, preset, overrides)
    // A worker does not know the presets of this file, only those that the file leaves as they are.
    let isBuiltIn =
      try PresetCatalog().presets.contains { $0.name == preset }
      && PresetCatalog().configuration(named: preset) == catalog.configuration(named: preset)
    return presets == nil || isBuiltIn
      ? RequestedResult(id: id, configuration: configuration, preset: preset, overrides: overrides)
      : RequestedResult(id: id, configuration: configuration, preset: "", overrides: configuration)
  }

  /// The preset with overrides in place.
  /// - Throws: an error that spells fields as options.
  static func configuration(
    _ catalog: PresetCatalog, _ preset: String, _ overrides: ProcessingConfiguration
  ) throws(PipelineError) -> ProcessingConfiguration {
    do {
      let configuration = try catalog.configuration(named: preset).overridden(by: overrides)
      try configuration.validate()
      return configuration
    } catch {
      throw PipelineError(error.code, error.optionMessage, field: error.field, limit: error.limit)
    }
  }
}

/// The options of one rendition, which are those of the command that make sense for it.
private struct RenditionOptions: ParsableArguments {
  @Option var preset: String?
  @OptionGroup var overrides: ConfigurationOptions

  private static let maxNameByteCount = 64

  /// - `text`: as in `small: --max-width 300`.
  static func read(_ text: String) throws -> (id: String, options: RenditionOptions) {
    guard let colon = text.unicodeScalars.firstIndex(of: ":") else {
      throw ValidationError(
        "--rendition is \"\(text)\"; it must be a name, a colon and options, as in 'small: --max-width 300'.")
    }
    let id = text[..<colon].split(separator: " ").joined(separator: " ")
    guard (1...maxNameByteCount).contains(id.utf8.count), !id.unicodeScalars.contains("/"), !id.utf8.contains(0)
    else {
      throw ValidationError(
        "--rendition has the name \"\(id)\"; it must have between 1 and \(maxNameByteCount) bytes, and no slash.")
    }
    do {
      let options = String(text.unicodeScalars[colon...].dropFirst())
      return (id, try parse(options.parts(separator: " ").filter { !$0.isEmpty }))
    } catch {
      throw ValidationError("--rendition \"\(id)\": \(message(for: error))")
    }
  }
}
