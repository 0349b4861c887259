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
        image-worker inspect photo.jpg --facts
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
    var facts: ImageFacts?
    var gainMap: GainMapInfo?
    let auxiliary = try OverlaySource.images(for: [configuration], directory: preset.overlays)
    do {
      let source = ImageFile(argument: file).with(auxiliary)
      image = try source.plan(.renditions([configuration]), countsFrames: true)
      gainMap = try source.listedGainMap()
      if configuration.facts ?? false {
        facts = try source.process(.renditions([configuration.forFactsAlone])) { _, _ in }.first?.get().facts
      }
    } catch let error as Errno {
      throw FileError(nil, file, "cannot be read", "\(error)")
    }
    var inspection = Inspection(
      file: file, try image.renditions[0].get(), workingSetByteCount: image.workingSetByteCount)
    if let gainMap { inspection.info.note(gainMap) }
    inspection.facts = facts.map { FactsLine($0) }
    try FileSystem.printLine(json ? JSONText.line(inspection) : ReadableText.printable(inspection.card))
  }
}
