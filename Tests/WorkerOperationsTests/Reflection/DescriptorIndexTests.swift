import SwiftProtobuf
import Testing

@testable import WorkerOperations

@Suite("DescriptorIndex")
struct DescriptorIndexTests {
  typealias File = Google_Protobuf_FileDescriptorProto

  /// Four files whose imports form a diamond; `top.proto` also imports a file that is not in the set.
  private let set: Google_Protobuf_FileDescriptorSet = .with { set in
    let bottom = File.with { file in
      file.name = "bottom.proto"
      file.package = "p"
      file.messageType = [.with { $0.name = "Base" }]
    }
    let left = File.with { file in
      file.name = "left.proto"
      file.package = "p"
      file.dependency = ["bottom.proto"]
      file.`extension` = [Self.extended(number: 7)]
      file.service = [.with { $0.name = "Zebra" }, .with { $0.name = "Ant" }]
    }
    let right = File.with { file in
      file.name = "right.proto"
      file.dependency = ["bottom.proto"]
      file.messageType = [
        .with { outer in
          outer.name = "Outer"
          outer.nestedType = [
            .with { inner in
              inner.name = "Inner"
              inner.`extension` = [Self.extended(number: 3)]
              inner.enumType = [
                .with { kind in
                  kind.name = "Kind"
                  kind.value = [.with { $0.name = "KIND_UNSPECIFIED" }]
                }
              ]
            }
          ]
        }
      ]
    }
    let top = File.with { file in
      file.name = "top.proto"
      file.dependency = ["left.proto", "right.proto", "absent.proto"]
    }
    set.file = [top, left, right, bottom]
  }

  private static func extended(number: Int32) -> Google_Protobuf_FieldDescriptorProto {
    .with { field in
      field.name = "more\(number)"
      field.number = number
      field.extendee = ".p.Base"
    }
  }

  private func index() throws -> DescriptorIndex { try DescriptorIndex(serialized: set.serializedBytes()) }

  @Test(
    "finds symbols of any depth, with and without a package",
    arguments: [
      ("p.Base", "bottom.proto"), ("p.Zebra", "left.proto"), ("p.more7", "left.proto"), ("Outer", "right.proto"),
      ("Outer.Inner", "right.proto"), ("Outer.Inner.more3", "right.proto"), ("Outer.Inner.Kind", "right.proto"),
      ("Outer.Inner.KIND_UNSPECIFIED", "right.proto"), ("Outer.Inner.Kind.KIND_UNSPECIFIED", "right.proto"),
    ])
  func symbols(symbol: String, file: String) throws {
    #expect(try index().file(containing: symbol)?.name == file)
    #expect(try index().file(containing: "." + symbol)?.name == file)
  }

  @Test("finds nothing by a part of a name", arguments: ["", ".", "p", "p.", "Inner", "p.Base.", "p.Zebra/", "/"])
  func noSymbol(symbol: String) throws {
    #expect(try index().file(containing: symbol) == nil)
  }

  @Test("finds extensions by number, those declared inside a message too")
  func extensions() throws {
    let index = try index()
    #expect(index.extensionNumbers(of: "p.Base") == [3, 7])
    #expect(index.file(extending: "p.Base", number: 7)?.name == "left.proto")
    #expect(index.file(extending: "p.Base", number: 3)?.name == "right.proto")
    #expect(index.file(extending: "p.Base", number: 4) == nil)
    #expect(index.file(extending: "Outer", number: 3) == nil)
  }

  @Test("distinguishes messages from other symbols")
  func messages() throws {
    let index = try index()
    #expect(index.hasMessage("p.Base") && index.hasMessage("Outer.Inner"))
    #expect(!index.hasMessage("p.Zebra") && !index.hasMessage("p.more7") && !index.hasMessage("Outer.Inner.Kind"))
  }

  @Test("returns each import once, imports first, without those sent or missing")
  func closure() throws {
    let index = try index()
    let top = try #require(index.file(named: "top.proto"))
    #expect(
      index.closure(of: top, without: []).map(\.name) == ["bottom.proto", "left.proto", "right.proto", "top.proto"])
    #expect(
      index.closure(of: top, without: ["left.proto", "bottom.proto"]).map(\.name) == ["right.proto", "top.proto"])
    #expect(index.closure(of: top, without: ["top.proto"]).isEmpty)
  }

  @Test("survives files that import each other")
  func cycle() throws {
    var set = Google_Protobuf_FileDescriptorSet()
    set.file = [("a", "b"), ("b", "a")].map { name, other in
      .with { file in
        file.name = name
        file.dependency = [other]
      }
    }
    let index = try DescriptorIndex(serialized: set.serializedBytes())
    #expect(index.closure(of: try #require(index.file(named: "a")), without: []).map(\.name) == ["b", "a"])
  }

  @Test("sorts the services")
  func services() throws {
    #expect(try index().services == ["p.Ant", "p.Zebra"])
  }

  @Test("has nothing of services that are not served")
  func hidden() throws {
    let index = try DescriptorIndex(serialized: set.serializedBytes(), without: ["p.Ant"])
    #expect(
      index.services.isEmpty && index.file(named: "left.proto") == nil && index.extensionNumbers(of: "p.Base") == [3])
    let embedded = try DescriptorIndex(without: ["inference.GRPCInferenceService"])
    #expect(embedded.services.count == 4 && !embedded.hasMessage("inference.ModelInferRequest"))
  }

  @Test("returns each file as it was described")
  func serialized() throws {
    let index = try index()
    for file in set.file {
      #expect(try File(serializedBytes: try #require(index.file(named: file.name)).serialized) == file)
    }
  }

  @Test("refuses bytes that are not a descriptor set")
  func malformed() {
    #expect(throws: (any Error).self) { try DescriptorIndex(serialized: [0x0a, 0xff]) }
  }

  @Test(
    "contains the details of errors, which clients show by reflection",
    arguments: ["ErrorInfo", "BadRequest", "RetryInfo", "QuotaFailure", "PreconditionFailure"])
  func errorDetails(message: String) throws {
    let index = try DescriptorIndex()
    #expect(index.file(containing: "google.rpc.\(message)")?.name == "google/rpc/error_details.proto")
  }

  @Test("does not look up what is too long for a name")
  func longNames() throws {
    let index = try index()
    // Hashing a letter with this many accents would take seconds.
    let text = "e" + String(repeating: "\u{301}", count: 4 << 20)
    let took = ContinuousClock().measure {
      #expect(index.file(named: text) == nil && index.file(containing: text) == nil && !index.hasMessage(text))
      #expect(index.file(extending: text, number: 1) == nil)
    }
    #expect(took < .seconds(1))
  }

  @Test("contains every served file with all its imports")
  func embedded() throws {
    let index = try DescriptorIndex()
    #expect(
      index.services == [
        "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
        "imageworker.v1.ImageWorkerService", "inference.GRPCInferenceService",
      ])
    for service in index.services {
      let file = try #require(index.file(containing: service))
      for file in index.closure(of: file, without: []) {
        #expect(file.imports.allSatisfy { index.file(named: $0) != nil }, "\(file.name)")
        let hasComments = try File(serializedBytes: file.serialized).hasSourceCodeInfo
        #expect(hasComments == file.name.hasPrefix("imageworker/"), "\(file.name)")
      }
    }
  }
}
