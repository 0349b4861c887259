import Fields
import Foundation
import ImageCodecs
import ImageKernels
import SwiftProtobuf
import TestSupport
import Testing
import WorkerProtocol

@testable import ImagePipeline
@testable import ResultCache
@testable import WorkerService

/// Tests complete messages with every field at every depth, generated from the contract's descriptors.
///
/// A field that the implementation forgot makes a test fail.
@Suite("Fields of the contract")
struct ConfigurationFieldsTests {
  /// A field's path, the outermost name first, and two values that it can have.
  struct Leaf: Sendable, CustomTestStringConvertible {
    var path: [String]
    var values: [Value]
    var testDescription: String { path.joined(separator: ".") }
  }

  enum Value: Sendable {
    case flag(Bool)
    case integer(Int)
    case number(Double)
    case text(String)
    case numbers([String: Double])
    case list([Double])

    var json: Any {
      switch self {
      case .flag(let value): value
      case .integer(let value): value
      case .number(let value): value
      case .text(let value): value
      case .numbers(let value): value
      case .list(let value): value
      }
    }
  }

  /// Fields that do not accept every value of their type.
  private static let special: [String: [Value]] = [
    "target_similarity": [.number(60), .number(70)], "scale_factor": [.number(1.5), .number(2)],
    "metadata_title": [.text("a title"), .text("ein Titel")],
    "metadata_copyright": [.text("a notice"), .text("ein Vermerk")],
    "metadata_description": [.text("a text"), .text("ein Text")],
    "accept": [.text("jpeg,png"), .text("webp")],
    "rotation": [.integer(90), .integer(180)],
    "png.palette_colors": [.integer(2), .integer(3)], "png.bit_depth": [.integer(16), .integer(8)],
    "jxl.bit_depth": [.integer(16), .integer(8)], "avif.bit_depth": [.integer(10), .integer(8)],
    "tensor.mean": [.list([0.25]), .list([0.5, 0.25, -1])],
    "tensor.standard_deviation": [.list([0.25]), .list([0.5, 0.25, 1])],
    "overlays.image": [.text("logo"), .text("mark")], "overlays.rotation": [.integer(90), .integer(180)],
    "overlays.text.text": [.text("a text"), .text("another")],
    "overlays.text.font": [.text("Sans"), .text("Serif Bold")], "overlays.text.size": [.number(10), .number(20.5)],
    "filters.name": [.text("blur"), .text("sharpen")],
    "filters.parameters": [.numbers(["radius": 1]), .numbers(["radius": 2])],
  ]

  static let leaves = leaves(of: ".imageworker.v1.ProcessingConfiguration", path: [])

  private static func leaves(of type: String, path: [String]) -> [Leaf] {
    let schema = ContractSchema.shared
    return schema.message(type).field.flatMap { field -> [Leaf] in
      let path = path + [field.name]
      let name = path.joined(separator: ".")
      if let values = special[name] { return [Leaf(path: path, values: values)] }
      switch field.type {
      case .message: return leaves(of: field.typeName, path: path)
      case .bool: return [Leaf(path: path, values: [.flag(true), .flag(false)])]
      case .double: return [Leaf(path: path, values: [.number(0.25), .number(0.5)])]
      case .enum: return [Leaf(path: path, values: [.integer(1), .integer(2)])]
      case .int32, .uint32, .uint64: return [Leaf(path: path, values: [.integer(1), .integer(2)])]
      default: return [Leaf(path: path, values: [])]
      }
    }
  }

  /// Returns a message in which every field has one of its values; the field `other` has its second value.
  private static func message(other: [String]? = nil) throws -> Imageworker_V1_ProcessingConfiguration {
    var root: [String: Any] = [:]
    for leaf in leaves {
      let value = leaf.path == other ? leaf.values.last : leaf.values.first
      set(try #require(value, "no sample for \(leaf.path)").json, at: leaf.path[...], in: &root)
    }
    return try parse(root)
  }

  private static func parse(_ root: [String: Any]) throws -> Imageworker_V1_ProcessingConfiguration {
    var root = root
    for name in ["filters", "regions", "overlays"] { if let element = root[name] { root[name] = [element] } }
    return try Imageworker_V1_ProcessingConfiguration(
      jsonUTF8Data: try JSONSerialization.data(withJSONObject: root))
  }

  private static func set(_ value: Any, at path: ArraySlice<String>, in record: inout [String: Any]) {
    guard let name = path.first else { return }
    guard path.count > 1 else { return record[name] = value }
    var inner = record[name] as? [String: Any] ?? [:]
    set(value, at: path.dropFirst(), in: &inner)
    record[name] = inner
  }

  private static func key(_ configuration: ProcessingConfiguration) -> [UInt8] {
    CacheKey(input: InputHasher(), configuration: configuration).bytes
  }

  @Test("the contract has fields at three depths, each with samples")
  func samples() {
    #expect(Self.leaves.count >= 41)
    #expect(Self.leaves.allSatisfy { !$0.values.isEmpty })
  }

  @Test("a whole message is read and written as it was")
  func wholeMessage() throws {
    let wire = try Self.message()
    #expect(try Imageworker_V1_ProcessingConfiguration(ProcessingConfiguration(wire)) == wire)
  }

  @Test("each field alone is read and written, merged, and part of the cache key", arguments: leaves)
  func eachField(leaf: Leaf) throws {
    guard leaf.values.count > 1 else { return }
    let (one, other) = (try Self.message(), try Self.message(other: leaf.path))
    try #require(one != other)
    let (ours, changed) = (try ProcessingConfiguration(one), try ProcessingConfiguration(other))
    #expect(try Imageworker_V1_ProcessingConfiguration(changed) == other)
    #expect(Self.key(ours) != Self.key(changed))
    #expect(ours.overridden(by: changed) == changed)
    #expect(changed.overridden(by: ours) == ours)
  }

  @Test("a field that is set alone overrides nothing else, and changes the cache key", arguments: leaves)
  func setAlone(leaf: Leaf) throws {
    // If a message's fields always have values, all of them are set.
    let isGroup = Self.groups[leaf.path[0]] != nil
    let set = Self.leaves.filter { isGroup ? $0.path == leaf.path : $0.path[0] == leaf.path[0] }
    var root: [String: Any] = [:]
    for member in set { Self.set(try #require(member.values.first).json, at: member.path[...], in: &root) }
    let (empty, alone) = (ProcessingConfiguration(), try ProcessingConfiguration(try Self.parse(root)))
    #expect(alone != empty && Self.key(alone) != Self.key(empty))
    #expect(empty.overridden(by: alone) == alone && alone.overridden(by: empty) == alone)
    let whole = try ProcessingConfiguration(try Self.message(other: leaf.path))
    let merged = try Imageworker_V1_ProcessingConfiguration(whole.overridden(by: alone))
    let first = try Self.message()
    #expect(merged == first)
  }

  @Test("a field changes images that may be passed through as it changes those that are encoded", arguments: leaves)
  func passthrough(leaf: Leaf) throws {
    let image = Fixture.bytes("photo.png")
    for value in leaf.values {
      // Bounds that change nothing by themselves; a message is set as a whole.
      var root: [String: Any] = ["max_width": 250, "max_height": 150]
      for member in Self.leaves where member.path[0] == leaf.path[0] {
        Self.set(try #require(member.values.first).json, at: member.path[...], in: &root)
      }
      Self.set(value.json, at: leaf.path[...], in: &root)
      let configuration = try ProcessingConfiguration(try Self.parse(root))
      var encoding = configuration
      encoding.alwaysEncode = true
      let (one, other) = (Self.outcome(image, configuration), Self.outcome(image, encoding))
      #expect(one == other, "\(leaf.path)")
    }
  }

  /// Messages that are set field by field: options of one format each, and an image of that format.
  private static let groups = ["jpeg": "photo-420.jpg", "png": "photo.png", "webp": "photo.webp"]

  @Test("an encoder option is not lost on images that may be passed through", arguments: leaves)
  func encoderOption(leaf: Leaf) throws {
    // At least one of several values is not the default.
    guard let name = Self.groups[leaf.path[0]], leaf.values.count > 1 else { return }
    var passages: [Passthrough] = []
    for value in [nil] + leaf.values.map(Optional.some) {
      var root: [String: Any] = [:]
      if let value { Self.set(value.json, at: leaf.path[...], in: &root) }
      let bytes = Fixture.bytes(name)
      var reader = ImageReader(limits: ImageLimits())
      let isComplete = try reader.push(bytes.span.bytes, isLast: true).isComplete
      #expect(isComplete)
      let plan = try reader.plan(try ProcessingConfiguration(try Self.parse(root)))
      passages.append(plan.passthrough)
    }
    #expect(passages.first == .copied && passages.contains(.decoded), "\(leaf.path): \(passages)")
  }

  /// Returns a result's pixels, or the error if there is no result.
  private static func outcome(_ image: [UInt8], _ configuration: ProcessingConfiguration) -> Result<
    Pixels, OutcomeError
  > {
    do throws(PipelineError) {
      let bytes = try process(image, configuration).bytes
      do { return .success(try Pixels.decode(bytes)) } catch { return .failure(OutcomeError(message: "\(error)")) }
    } catch { return .failure(OutcomeError(message: error.message)) }
  }

  private struct OutcomeError: Error, Equatable { var message: String }

  @Test("keys of equal requests are equal, those of other versions are not")
  func keys() throws {
    let configuration = try ProcessingConfiguration(try Self.message())
    let again = try ProcessingConfiguration(try Self.message())
    #expect(Self.key(configuration) == Self.key(again))
    let later = CacheKey(
      input: InputHasher(), configuration: configuration, version: ResultVersion.current + 1)
    #expect(later.bytes != Self.key(configuration))
    // Documented: an unset field and a field set to its default are different requests.
    #expect(Self.key(ProcessingConfiguration()) != Self.key(ProcessingConfiguration(allowUpscale: false)))
  }

  @Test("every property of a record has a row")
  func rows() {
    func check<Record: FieldRecord>(_ record: Record) {
      #expect(Mirror(reflecting: record).children.count == Record.fields.count, "\(Record.self)")
      #expect(Set(Record.fields.map(\.name)).count == Record.fields.count)
    }
    check(ProcessingConfiguration())
    check(JPEGOptions())
    check(PNGOptions())
    check(WebPOptions())
    check(TensorOptions())
    check(Color())
    check(Point())
    check(Crop())
    check(Filter())
    check(Region())
    check(Trim())
    check(Overlay(image: "logo"))
    check(TextOverlay(text: "a text"))
  }

  @Test("an unknown value of an enum is refused with those that are accepted, by number and name")
  func unknownChoice() throws {
    let wire = try Imageworker_V1_ProcessingConfiguration(jsonString: "{\"resizeMode\": 99}")
    let error = #expect(throws: PipelineError.self) { try MessageReader.value(of: wire) }
    #expect(error?.message == "resize_mode is 99; it must be one of: 1 (FIT), 2 (FILL), 3 (STRETCH)")
    #expect(error?.field == "resize_mode")
  }

  @Test("every enum value of the contract has a counterpart")
  func choices() throws {
    let schema = ContractSchema.shared
    func check<Choice: FieldChoice>(_ type: Choice.Type, _ name: String) {
      #expect(
        schema.choices(of: ".imageworker.v1.\(name)").map(\.name).sorted() == type.allCases.map(\.rawValue).sorted())
    }
    check(OutputFormat.self, "OutputFormat")
    check(ResizeMode.self, "ResizeMode")
    check(Gravity.self, "Gravity")
    check(MetadataPolicy.self, "MetadataPolicy")
    check(Crop.Unit.self, "RectUnit")
    check(ChromaSubsampling.self, "ChromaSubsampling")
    check(PNGFilter.self, "PNGFilter")
    check(TensorOptions.ElementType.self, "TensorElementType")
    check(TensorOptions.Layout.self, "TensorLayout")
    check(TensorOptions.Channels.self, "TensorChannels")
    check(TensorOptions.Normalization.self, "TensorNormalization")
    check(Region.Shape.self, "RegionShape")
    check(Region.Effect.self, "RegionEffect")
    check(TextStyle.Alignment.self, "TextAlignment")
  }
}
