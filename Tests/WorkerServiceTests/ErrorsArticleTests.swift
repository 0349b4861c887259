import Foundation
import GRPCCore
import GRPCProtobuf
import ImagePipeline
import TestSupport
import Testing
import WorkerProtocol

@testable import WorkerService

/// Compares the article Errors with the errors of the service.
@Suite("Errors article")
struct ErrorsArticleTests {
  @Test("its table has every reason with its code, and no other")
  func table() throws {
    let rows = try Self.article().matches(of: /\n\| `([A-Z_]+)` \| ([A-Z_]+) \| [^|]+ \| [^|]+ \|/).map {
      "\($0.1) \($0.2)"
    }
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

  @Test("the table of warnings has every code and its parameters, and no other; the contract has each code")
  func warnings() throws {
    let size = PixelSize(width: 3, height: 2)
    let all: [Warning] = [
      .brokenEXIF, .firstImageOnly, .repairedDamage, .missingEnd, .truncated, .unusableProfile,
      .damaged(row: 1, height: 2), .ignoredScaleFactor, .ignoredTargetSimilarity(size),
      .missedTargetSimilarity(1, becauseOf: "max_bytes"), .reducedSize(size, planned: size),
      .reducedQuality(0.5, requested: 1, imageByteCount: 9),
      .largerThanImage(byteCount: 2, imageByteCount: 1, note: ""), .ignoredNeverLarger,
      .changedFormat("png", planned: "avif"), .damagedWithoutLoss, .lateOrientation, .uncheckedDamage,
      .droppedFrames(3, isMinimum: true), .removedCredentials, .changedColorSpace(requested: .keep, because: .hdr),
      .ignoredTrim, .missingFaces(field: "gravity"), .cutFaces(3, kept: 1), .removedGainMap(because: .damage),
      .reducedBitDepth(because: .filters),
    ]
    let rows = try Self.article().matches(of: /\n\| `([A-Z_]+)` \| [^|]+ \| ([a-z_`, ]*)\| [^|]+ \|/).map {
      "\($0.1) \($0.2.replacing(/[^a-z_]+/, with: " ").split(separator: " ").sorted())"
    }
    #expect(rows.sorted() == all.map { "\($0.code?.rawValue ?? "") \($0.parameters.keys.sorted())" }.sorted())
    #expect(Set(all.map(\.code)) == Set(Warning.Code.allCases.map { $0 }))
    let codes = Warning.Code.allCases.map { Imageworker_V1_WarningCode($0) }
    #expect(codes.map(\.rawValue).sorted() == Imageworker_V1_WarningCode.allCases.dropFirst().map(\.rawValue).sorted())
    for warning in all {
      let wire = Imageworker_V1_WarningDetail(warning)
      #expect("\(wire.code)".lowercased() == warning.code?.rawValue.replacing("_", with: "").lowercased())
      #expect(Warning(wire) == warning)
    }
  }

  private static func article() throws -> String {
    try document("Sources/image-worker/Documentation.docc/Errors.md")
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
