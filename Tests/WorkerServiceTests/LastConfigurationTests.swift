import ImagePipeline
import SwiftProtobuf
import Testing
import WorkerProtocol

@testable import WorkerService

@Suite("The configuration of the request before")
struct LastConfigurationTests {
  private let last = LastConfiguration()
  private let base = ProcessingConfiguration(maxWidth: 100)

  private func overrides(height: UInt32) -> Imageworker_V1_ProcessingConfiguration {
    .with { $0.maxHeight = height }
  }

  @Test("is that of a request only if the request and its preset are the same")
  func reuse() throws {
    for height in [10, 10, 20, 20, 10] as [UInt32] {
      for base in [base, base, ProcessingConfiguration(maxWidth: 200)] {
        var expected = base
        expected.maxHeight = Int(height)
        #expect(try last.value(base, overrides(height: height)) == expected)
      }
    }
    #expect(try last.value(base, Imageworker_V1_ProcessingConfiguration()) == base)
  }

  @Test("is not that of a request whose texts only look the same")
  func texts() throws {
    for title in ["é", "e\u{301}", "é"] {
      let requests: [Imageworker_V1_ProcessingConfiguration] = [
        .with { $0.metadataTitle = title },
        .with { $0.overlays = [.with { $0.text = .with { $0.text = title } }] },
      ]
      for request in requests {
        let value = try last.value(base, request)
        let found = try #require(value.metadataTitle ?? value.overlays?.first?.text?.text)
        #expect(Array(found.utf8) == Array(title.utf8))
      }
      var preset = base
      preset.metadataCopyright = title
      let copyright = try #require(try last.value(preset, .with { $0.maxHeight = 10 }).metadataCopyright)
      #expect(Array(copyright.utf8) == Array(title.utf8))
    }
  }

  @Test("is not that of a request that was refused")
  func refusal() throws {
    let known = try last.value(base, overrides(height: 10))
    for _ in 0..<2 {
      #expect(throws: PipelineError.self) { try last.value(base, overrides(height: 0)) }
    }
    #expect(try last.value(base, overrides(height: 10)) == known)
  }
}
