import Foundation
import GRPCCore
import GRPCProtobuf
import ImagePipeline
import Testing

@testable import WorkerService

/// Compares the article Errors with the errors of the service.
@Suite("Errors article")
struct ErrorsArticleTests {
  @Test("its table has every reason with its code, and no other")
  func table() throws {
    let root = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let article = try String(
      contentsOf: root.appendingPathComponent("Sources/image-worker/Documentation.docc/Errors.md"), encoding: .utf8)
    let rows = article.matches(of: /\n\| `([A-Z_]+)` \| ([A-Z_]+) \| [^|]+ \| [^|]+ \|/).map { "\($0.1) \($0.2)" }
    let callerErrors: [CallerError] = [
      .notAllowed("", field: nil), .quotaExceeded("", caller: "", retryDelay: nil),
    ]
    let errors: [any Error] = PipelineError.Code.allCases.map { PipelineError($0, "") } + callerErrors + [DrainError()]
    let expected = try errors.map { error in
      let status = WireError.itemStatus(any: error)
      let reason = try #require(status.details.lazy.compactMap(\.errorInfo).first?.reason)
      return "\(reason) \(Self.name(of: status.code))"
    }
    // Calls without credentials are refused by the listener.
    #expect(rows.sorted() == (expected + ["UNAUTHENTICATED UNAUTHENTICATED"]).sorted())
  }

  /// Returns a code's name as the gRPC specification spells it, from its description in camel case.
  private static func name(of code: RPCError.Code) -> String {
    code == .internalError
      ? "INTERNAL"
      : "\(code)".reduce(into: "") { name, letter in
        if letter.isUppercase, !name.hasSuffix("_"), !name.isEmpty { name += "_" }
        name += letter.uppercased()
      }
  }
}
