import ImagePipeline
import TestSupport
import Testing

/// Every image of the shared collection, if there is one next to this checkout.
@Suite("Corpus", .enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct CorpusTests {
  /// Lossless JPEG (SOF3), which libjpeg-turbo 2 does not decode.
  private static let undecodable = ["_lossless_"]

  @Test("every image has the expected outcome, and none crashes", arguments: folders)
  func outcomes(folder: String) throws {
    for (name, expectation) in Corpus.expectations where name.hasPrefix(folder) {
      let configuration = ProcessingConfiguration(
        maxWidth: 300, maxHeight: 300, compressionQuality: 0.8, preferredFormat: .jpeg)
      let bytes = try Corpus.bytes(name)
      let outcome = Result { try process(bytes, configuration, windowByteCount: 65536) }
      switch (outcome, expectation.want) {
      case (.success(let result), "decode"):
        let size = PixelSize(width: expectation.width ?? 0, height: expectation.height ?? 0)
        #expect(result.report.input.size == size, "\(name)")
        let expected = outputSize(of: result.report.input.size, configuration: configuration)
        #expect(result.report.output.size == expected, "\(name)")
      case (.success, "reject"):
        Issue.record("\(name) was not refused")
      case (.failure(let error), "decode"):
        let isKnown = Self.undecodable.contains { name.contains($0) }
        let isUnsupported = (error as? PipelineError)?.code == .unsupportedImage
        if !isKnown, !isUnsupported { Issue.record("\(name) was refused: \(error)") }
      default: break
      }
      if case .failure(let error) = outcome {
        #expect((error as? PipelineError)?.code != .internalDefect, "\(name): \(error)")
      }
    }
  }

  private static let folders: [String] = Set(
    Corpus.expectations.keys.compactMap { $0.split(separator: "/").first.map { "\($0)/" } }
  ).sorted()
}
