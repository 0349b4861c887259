import ImagePipeline
import SwiftProtobuf
import Testing
import WorkerProtocol

@testable import WorkerService

@Suite("Warnings of the contract")
struct WarningWireTests {
  @Test("each warning has the code of its name, and is read as it was written", arguments: Warning.Code.allCases)
  func codes(code: Warning.Code) throws {
    let warning = Warning(code, "a message", ["row": "1", "height": "2"])
    let wire = Imageworker_V1_WarningDetail(warning)
    #expect(try wire.jsonString().contains("\"WARNING_CODE_\(code.rawValue)\""))
    #expect(wire.message == "a message" && wire.parameters == ["row": "1", "height": "2"])
    #expect(Warning(wire) == warning)
  }

  @Test("a warning of an unknown kind has no code, and those of a report without details have none")
  func unknown() {
    let unknown = Warning(nil, "of another version")
    #expect(Imageworker_V1_WarningDetail(unknown).code == .unspecified)
    #expect(Warning(Imageworker_V1_WarningDetail(unknown)) == unknown)
    var report = Imageworker_V1_ProcessingReport()
    report.warnings = ["one", "two"]
    #expect(Warning.all(of: report) == [Warning(nil, "one"), Warning(nil, "two")])
    let detailed = Warning(.truncated, "one")
    report.warningDetails = [Imageworker_V1_WarningDetail(detailed)]
    #expect(Warning.all(of: report) == [detailed])
  }
}
