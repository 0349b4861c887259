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
    let titles = ["é", "e\u{301}", "é"]
    // One after the other, as only the last one is kept.
    for title in titles {
      let value = try last.value(base, .with { $0.metadataTitle = title })
      #expect(value.metadataTitle.map { Array($0.utf8) } == Array(title.utf8))
    }
    for title in titles {
      let value = try last.value(base, .with { $0.overlays = [.with { $0.text = .with { $0.text = title } }] })
      #expect(value.overlays?.first?.text.map { Array($0.text.utf8) } == Array(title.utf8))
    }
    for title in titles {
      var preset = base
      preset.metadataCopyright = title
      let value = try last.value(preset, overrides(height: 10))
      #expect(value.metadataCopyright.map { Array($0.utf8) } == Array(title.utf8))
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
