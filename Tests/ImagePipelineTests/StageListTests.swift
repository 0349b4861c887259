import ImagePipeline
import TestSupport
import Testing

@Suite("Stage list")
struct StageListTests {
  @Test("Architecture.md names the stages in the order of the list")
  func documented() throws {
    let design = try document("Architecture.md")
    let line = Pipeline.stageNames.map { "`\($0)`" }.joined(separator: " → ")
    #expect(design.split(separator: "\n").contains { $0 == line }, "\(line)")
  }
}
