import TestSupport
import Testing

@Suite("Stage list")
struct StageListTests {
  @Test("Architecture.md names the stages in the order of the list")
  func documented() throws {
    let design = try document("Architecture.md")
    let list = try document("Sources/ImagePipeline/Pipeline.swift")
    let stages = list.matches(of: /(?:Listed|\.then)\((\w+)Stage\(/).map { "`\($0.1.lowercased())`" }
    let line = stages.joined(separator: " → ") + " → `encode`"
    #expect(design.split(separator: "\n").contains { $0 == line }, "\(line)")
  }
}
