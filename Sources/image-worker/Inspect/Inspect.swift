internal import ArgumentParser
internal import ImagePipeline
internal import SystemPackage

/// `image-worker inspect`.
struct Inspect: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the properties of an image, and of the result that a preset would give.")

  @Argument(help: "Set the image.", completion: .file())
  var file: String
  @Flag(help: "Print the properties as a JSON object on one line.")
  var json = false
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
  @OptionGroup(title: "Overrides of the preset")
  var overrides: ConfigurationOptions

  func run() async throws {
    let configuration = try ResultOptions.configuration(
      try PresetSource.catalog(path: presets), preset, try overrides.configuration)
    let image: ImagePlan
    do { image = try ImageFile(path: FilePath(file)).plan(.results([configuration])) } catch let error as Errno {
      throw FileError(nil, file, "cannot be read", "\(error)")
    }
    let inspection = Inspection(
      file: file, try image.renditions[0].get(), workingSetByteCount: image.workingSetByteCount)
    print(json ? try inspection.json : inspection.card)
  }
}
