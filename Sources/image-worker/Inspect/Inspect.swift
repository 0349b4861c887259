internal import ArgumentParser
internal import ImagePipeline
internal import SystemPackage

/// `image-worker inspect`.
struct Inspect: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the properties of an image, and of the result that a preset would give.",
    discussion: """
      Examples:
        image-worker inspect photo.jpg --preset thumbnail
        curl -sSfL https://example.com/photo.jpg | image-worker inspect - --json
      """)

  @Argument(help: "Set the image; - is standard input.", completion: .file())
  var file: String
  @Flag(help: "Print the properties as a JSON object on one line.")
  var json = false
  @OptionGroup(title: "Presets")
  var preset: PresetOptions
  @OptionGroup
  var overrides: ConfigurationOptions

  func validate() throws {
    if let problem = URLArgument.problem(file) { throw ValidationError("\(problem).") }
  }

  func run() async throws {
    let catalog = try PresetSource.catalog(path: preset.presets)
    let configuration = try ResultOptions.configuration(
      catalog, preset.preset, overrides.configuration.withDefaultQuality(for: preset.preset, in: catalog))
    let image: ImagePlan
    do { image = try ImageFile(argument: file).plan(.results([configuration]), countsFrames: true) } catch let error
      as Errno
    {
      throw FileError(nil, file, "cannot be read", "\(error)")
    }
    let inspection = Inspection(
      file: file, try image.renditions[0].get(), workingSetByteCount: image.workingSetByteCount)
    print(json ? try inspection.json : ReadableText.printable(inspection.card))
  }
}
