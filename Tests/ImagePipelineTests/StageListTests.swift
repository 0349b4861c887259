import Foundation
import ImagePipeline
import Testing

@Suite("Stage list")
struct StageListTests {
  @Test("Architecture.md names the stages in the order of the list")
  func documented() throws {
    let root = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let design = try String(
      contentsOf: root.appendingPathComponent("Architecture.md"), encoding: .utf8)
    let line = Pipeline.stageNames.map { "`\($0)`" }.joined(separator: " → ")
    #expect(design.split(separator: "\n").contains { $0 == line }, "\(line)")
  }
}
