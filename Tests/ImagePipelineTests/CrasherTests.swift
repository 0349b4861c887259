import ImagePipeline
import TestSupport
import Testing

@Suite("Files that once had defects", .timeLimit(.minutes(5)))
struct CrasherTests {
  private static let configurations = [
    ProcessingConfiguration(),
    ProcessingConfiguration(maxWidth: 32, preferredFormat: .png, metadata: .keepAll, alwaysEncode: true),
  ]

  @Test("become results or errors", arguments: Crasher.names)
  func outcomes(name: String) throws {
    let bytes = try Crasher.bytes(name)
    for configuration in Self.configurations {
      do { _ = try process(bytes, configuration) } catch {
        #expect(error.code != .internalDefect, "\(name): \(error)")
      }
    }
  }
}
