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

  @Test("is not that of a request that was refused")
  func refusal() throws {
    let known = try last.value(base, overrides(height: 10))
    for _ in 0..<2 {
      #expect(throws: PipelineError.self) { try last.value(base, overrides(height: 0)) }
    }
    #expect(try last.value(base, overrides(height: 10)) == known)
  }
}
