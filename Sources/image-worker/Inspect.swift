internal import ArgumentParser
internal import ImagePipeline
internal import SystemPackage

/// `image-worker inspect`.
struct Inspect: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tell what a picture is, and what a preset would make of it, from its first kilobytes.")

  @Argument(help: "The picture.", completion: .file())
  var file: String
  @Option(help: ArgumentHelp("Preset: \(Preset.builtIn.map(\.name).joined(separator: ", ")).", valueName: "name"))
  var preset = Preset.defaultName
  @Option(help: "A YAML file of presets beside the built-in ones.", completion: .file())
  var presets: String?
  @OptionGroup(title: "Overrides of the preset")
  var overrides: ConfigurationOptions

  func run() async throws {
    let configuration = try PresetSource.catalog(path: presets).configuration(
      named: preset, overrides: overrides.configuration)
    let plan = try ImageFile(path: FilePath(file)).plan(configuration)
    let (input, output) = (plan.input, plan.outputInfo)
    print(
      """
      format       \(input.format)
      size         \(input.size)
      orientation  \(input.orientation)
      alpha        \(input.hasAlpha ? "yes" : "no")
      depth        \(input.bitDepth) bits a sample
      colours      \(input.colorSpace)
      frames       \(input.frameCount == 0 ? "not known" : "\(input.frameCount)")
      result       \(output.format) \(output.size)
      decoded at   \(plan.decodeScale)/8
      filters      \(plan.filters.isEmpty ? "none" : plan.filters.description)
      working set  \(plan.workingSetByteCount) bytes at most
      """)
  }
}
