import Fields
import ImagePipeline
import TestSupport
import Testing

@Suite("Filter chains")
struct FilterChainTests {
  @Test(
    "adjacent filters are fused if that does not change the image, and the plan shows it",
    arguments: [
      // Adjacent matrices whose results need no clamping are fused into one, and so are linear steps.
      (["grayscale", "tint", "duotone"], "matrix(grayscale, tint, duotone)"),
      (["invert", "grayscale", "saturation"], "matrix(invert, grayscale, saturation)"),
      // Steps with clamping between them are not multiplied together.
      (["saturation", "grayscale"], "matrix(saturation) > matrix(grayscale)"),
      (["sepia", "hue", "grayscale"], "matrix(sepia) > matrix(hue) > matrix(grayscale)"),
      // Curves are composed, including their clamping.
      (
        ["brightness", "contrast", "gamma", "exposure", "invert"],
        "levels(brightness, contrast, gamma, exposure, invert)"
      ),
      (["gamma", "brightness", "grayscale"], "table(gamma, brightness) > matrix(grayscale)"),
      (["grayscale", "gamma"], "matrix(grayscale) > curve(gamma)"),
      (["gamma", "invert", "grayscale"], "table(gamma) > matrix(invert, grayscale)"),
      // Area filters separate passes and keep their positions.
      (["gamma", "blur", "gamma"], "levels(gamma) | blur(halo 12) | levels(gamma)"),
      (["blur", "sharpen", "pixelate"], "blur(halo 12) | sharpen(halo 3) | pixelate(halo 7)"),
      (["vignette", "sepia", "threshold", "tint"], "vignette > matrix(sepia) > threshold > matrix(tint)"),
      // Filters that cancel each other out are removed.
      (["invert", "invert"], ""), (["blur", "invert", "invert"], "blur(halo 12)"), ([], ""),
    ] as [([String], String)])
  func fusing(names: [String], description: String) throws {
    let plan = try plan(names.map { Filter(name: $0) })
    #expect(plan.filters.description == description)
    #expect(plan.filters.isEmpty == description.isEmpty)
  }

  @Test("a filter that stays in range can be fused with the next")
  func ranges() throws {
    let strong = [Filter(name: "brightness", parameters: ["amount": 1.6]), Filter(name: "sepia", intensity: 0.5)]
    #expect(try plan(strong).filters.description == "table(brightness) > matrix(sepia)")
    let weak = [Filter(name: "brightness", parameters: ["amount": 0.6])] + strong
    #expect(try plan(weak).filters.description == "matrix(brightness, brightness, sepia)")
  }

  @Test("halos add up over a chain")
  func halos() throws {
    let chain = [Filter(name: "blur", parameters: ["radius": 2.1]), Filter(name: "gamma"), Filter(name: "sharpen")]
    #expect(try plan(chain).filters.haloRowCount == 2 * 7 + 2 * 3)
  }

  @Test(
    "an unknown name or value out of range is refused by its position, and the error lists the alternatives",
    arguments: [
      ([Filter(name: "sepa")], "filters[0].name", "grayscale, sepia, invert"),
      ([Filter(name: "blur"), Filter(name: "")], "filters[1].name", "threshold"),
      ([Filter(name: "sepia", intensity: 1.5)], "filters[0].intensity", "between 0 and 1"),
      ([Filter(name: "sepia", intensity: .nan)], "filters[0].intensity", "between 0 and 1"),
      ([Filter(name: "sepia", intensity: -0.1)], "filters[0].intensity", "between 0 and 1"),
      ([Filter(name: "sepia", parameters: ["radius": 1])], #"filters[0].parameters["radius"]"#, "has no parameters"),
      (
        [Filter(name: "sharpen", parameters: ["sigma": 1])], #"filters[0].parameters["sigma"]"#,
        "radius, amount, threshold"
      ),
      (
        [Filter(name: "tint"), Filter(name: "blur", parameters: ["radius": 51])],
        #"filters[1].parameters["radius"]"#, "between 0.1 and 50"
      ),
      ([Filter(name: "blur", parameters: ["radius": .infinity])], #"filters[0].parameters["radius"]"#, "50"),
      ([Filter(name: "pixelate", parameters: ["size": 2.5])], #"filters[0].parameters["size"]"#, "whole number"),
      ([Filter(name: "hue", parameters: ["a\"\n": 1])], #"filters[0].parameters["a\"\n"]"#, "angle"),
      ([Filter](repeating: Filter(name: "sepia"), count: 33), "filters", "32"),
    ] as [([Filter], String, String)])
  func refusals(filters: [Filter], field: String, mention: String) {
    let error = #expect(throws: PipelineError.self) { try ProcessingConfiguration(filters: filters).validate() }
    #expect(error?.code == .invalidField && error?.field == field)
    #expect(error?.message.contains(mention) == true, "\(error?.message ?? "")")
  }

  @Test("a long name does not cause a long message")
  func longNames() {
    let name = String(repeating: "x", count: 100_000)
    for filter in [Filter(name: name), Filter(name: "blur", parameters: [name: 1])] {
      let error = #expect(throws: PipelineError.self) { try ProcessingConfiguration(filters: [filter]).validate() }
      #expect((error?.message.utf8.count ?? .max) < 400 && (error?.field?.utf8.count ?? .max) < 200)
    }
  }

  @Test("every default is in its range, and both ends of each range work", arguments: FilterKind.allCases)
  func ends(kind: FilterKind) throws {
    for parameter in kind.parameters {
      #expect(parameter.allows(parameter.defaultValue))
      for value in [parameter.range.lowerBound, parameter.range.upperBound] {
        let filter = Filter(name: kind.rawValue, parameters: [parameter.name: value])
        let configuration = ProcessingConfiguration(maxWidth: 30, filters: [filter])
        #expect(try process(Fixture.bytes("alpha.png"), configuration).report.output.size.width == 30)
      }
    }
  }

  @Test("a configuration's filters replace its preset's")
  func overrides() {
    let preset = ProcessingConfiguration(filters: [Filter(name: "sepia")])
    #expect(preset.overridden(by: ProcessingConfiguration()).filters?.map(\.name) == ["sepia"])
    let other = ProcessingConfiguration(filters: [Filter(name: "blur")])
    #expect(preset.overridden(by: other).filters?.map(\.name) == ["blur"])
  }

  private func plan(_ filters: [Filter]) throws -> Plan {
    var reader = ImageReader(limits: ImageLimits())
    let (isComplete, _) = try reader.push(Fixture.bytes("photo.png").span.bytes, isLast: true)
    #expect(isComplete)
    return try reader.plan(ProcessingConfiguration(filters: filters))
  }
}
