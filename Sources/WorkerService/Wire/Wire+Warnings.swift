internal import Fields
package import ImagePipeline
internal import SwiftProtobuf
package import WorkerProtocol

extension Imageworker_V1_WarningDetail {
  init(_ warning: Warning) {
    self.init()
    code = warning.code.map { Imageworker_V1_WarningCode($0) } ?? .unspecified
    message = warning.message
    parameters = warning.parameters
  }
}

extension Warning {
  /// A warning of a report; one of an unknown kind has no code.
  package init(_ wire: Imageworker_V1_WarningDetail) {
    let code = Warning.Code.allCases.first { Imageworker_V1_WarningCode($0) == wire.code }
    self.init(code, wire.message, wire.parameters)
  }

  /// The warnings of a report; those of a version without details have no code.
  package static func all(of report: Imageworker_V1_ProcessingReport) -> [Warning] {
    report.warningDetails.isEmpty
      ? report.warnings.map { Warning(nil, $0) } : report.warningDetails.map { Warning($0) }
  }
}

extension Imageworker_V1_WarningCode {
  init(_ code: Warning.Code) { self = .named(.word(code.rawValue.lowercased()), of: "WarningCode") }
}
