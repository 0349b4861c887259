import Fields
import ImagePipeline
import Testing

@testable import WorkerPlayground

@Suite("Contract description")
struct ContractDescriptionTests {
  private let contract = ContractDescription.shared

  @Test("has every field of a configuration, in the contract's order, with its comment")
  func fields() throws {
    let fields = try #require(contract.messages["ProcessingConfiguration"])
    #expect(Set(fields.map(\.name)) == Set(ProcessingConfiguration.fields.map(\.name)))
    #expect(fields.first?.name == "max_width")
    for field in fields + (contract.messages["JPEGOptions"] ?? []) {
      #expect(field.comment.contains("Default:"), "\(field.name)")
      #expect(field.type != "message" || contract.messages[field.typeName] != nil, "\(field.name)")
      #expect(field.type != "enum" || contract.enums[field.typeName]?.isEmpty == false, "\(field.name)")
    }
  }

  @Test("has the short names and comments of choices, without the one that stands for none")
  func choices() throws {
    let modes = try #require(contract.enums["ResizeMode"])
    #expect(modes.map(\.word) == ["fit", "fill", "stretch"])
    #expect(modes.map(\.name) == ["RESIZE_MODE_FIT", "RESIZE_MODE_FILL", "RESIZE_MODE_STRETCH"])
    #expect(modes.allSatisfy { !$0.comment.isEmpty })
  }

  @Test("has the numbers of accepted values")
  func ranges() throws {
    func range(_ path: String) throws -> [Double?] {
      let option = try #require(contract.options[path])
      return [option.minimum, option.maximum]
    }
    #expect(try range("max_width") == [1, 65_500])
    #expect(try range("compression_quality") == [0, 1])
    #expect(try range("scale_factor") == [1, nil])
    #expect(try range("jpeg.restart_rows") == [0, 65_535])
    #expect(try range("png.palette_colors") == [0, 256])
    #expect(contract.options["rotation"]?.choices == [0, 90, 180, 270])
    #expect(contract.options["max_width"]?.choices == [])
    #expect(contract.options["pad"]?.kind == "flag")
    #expect(contract.options["filters"]?.kind == "list")
  }

  @Test("has every filter with its parameters")
  func filters() {
    #expect(contract.filters.map(\.name) == FilterKind.allCases.map(\.rawValue))
    for (filter, kind) in zip(contract.filters, FilterKind.allCases) {
      #expect(filter.parameters.map(\.name) == kind.parameters.map(\.name))
    }
  }
}
