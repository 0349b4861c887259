import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Sharpening of reduced images")
struct SharpenReducedTests {
  /// The configuration with the filter written out.
  private static func written(_ configuration: ProcessingConfiguration, amount: Double) -> ProcessingConfiguration {
    var written = configuration
    written.sharpenReduced = nil
    let filter = Filter(name: "sharpen", parameters: ["radius": 0.7, "amount": amount])
    written.filters = [filter] + (configuration.filters ?? [])
    return written
  }

  // The photograph is 240x160.
  @Test(
    "the result is that of the filter, whose amount follows the reduction",
    arguments: [(120, 1.0, 0.33), (60, 1.0, 0.67), (30, 0.5, 0.5), (12, 2.0, 2.0)])
  func amounts(width: Int, sharpen: Double, amount: Double) throws {
    let image = Fixture.bytes("photo-420.jpg")
    for format in [OutputFormat.png, .jpeg] {
      let configuration = ProcessingConfiguration(
        maxWidth: width, preferredFormat: format, filters: [Filter(name: "sepia", intensity: 0.5)],
        sharpenReduced: sharpen)
      let sharpened = try process(image, configuration).bytes
      #expect(sharpened == (try process(image, Self.written(configuration, amount: amount)).bytes))
      var plain = configuration
      plain.sharpenReduced = nil
      #expect(sharpened != (try process(image, plain).bytes))
    }
  }

  @Test("an image that is not reduced is not filtered, and may be passed through")
  func unchanged() throws {
    let image = Fixture.bytes("photo.png")
    #expect(try process(image, ProcessingConfiguration(sharpenReduced: 1)).report.isPassedThrough)
    let enlarged = ProcessingConfiguration(maxWidth: 300, allowUpscale: true)
    var sharpened = enlarged
    sharpened.sharpenReduced = 2
    #expect(try process(image, enlarged).bytes == process(image, sharpened).bytes)
  }

  @Test("a full chain of filters leaves room for sharpening, in previews, too")
  func fullChain() throws {
    let image = Fixture.bytes("photo.png")
    let filters = Array(repeating: Filter(name: "sharpen", parameters: ["radius": 1, "amount": 0.1]), count: 32)
    let configuration = ProcessingConfiguration(maxWidth: 50, filters: filters, sharpenReduced: 1)
    #expect(try process(image, configuration).report.output.size.width == 50)
    var reader = ImageReader(limits: ImageLimits())
    #expect(try reader.push(image.span.bytes, isLast: true).isComplete)
    #expect(try reader.previewPlan(configuration).plans.count == 1)
  }
}
