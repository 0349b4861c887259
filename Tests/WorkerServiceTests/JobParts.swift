import Foundation
import ImagePipeline

@testable import WorkerService

/// Supplies an image in portions, from memory.
final class PortionedSource: ImageSource {
  private var portions: [Data]
  /// What `next` throws when the portions are used up; `nil` to end there.
  var failure: (any Error)?
  var isComplete = false
  let bufferedByteCount: Int

  /// - `byteCount`: of a portion.
  init(_ bytes: [UInt8], byteCount: Int, bufferedByteCount: Int = 0) {
    portions = stride(from: 0, to: bytes.count, by: byteCount).map {
      Data(bytes[$0..<min($0 + byteCount, bytes.count)])
    }
    self.bufferedByteCount = bufferedByteCount
  }

  func next() async throws -> (bytes: Data, isLast: Bool) {
    if !portions.isEmpty { return (portions.removeFirst(), false) }
    if let failure { throw failure }
    isComplete = true
    return (Data(), true)
  }
}

/// Records what comes.
final class RecordingSink: ResultSink {
  private(set) var parts: [ResultPart] = []
  /// Called with each part.
  var onPart: (ResultPart) throws -> Void = { _ in }

  func send(_ part: ResultPart) async throws {
    parts.append(part)
    try onPart(part)
  }

  /// Each part's kind, of previews with a tilde.
  var kinds: [String] {
    parts.map { part in
      let kind =
        switch part.content {
        case .header: "header"
        case .chunk: "chunk"
        case .report: "report"
        case .failure: "failure"
        }
      return (part.rendition.isPreview ? "~" : "") + kind
    }
  }

  /// The result's bytes, without the preview's.
  var bytes: Data {
    parts.reduce(into: Data()) { bytes, part in
      if case .chunk(let chunk) = part.content, !part.rendition.isPreview { bytes += chunk }
    }
  }

  var reports: [ResultReport] {
    parts.compactMap { if case .report(let report) = $0.content { report } else { nil } }
  }
}

/// Admits at once, and notes for how much it was asked.
final class RecordingAdmission: ImageAdmission {
  private let memory: MemoryBudget
  private(set) var byteCounts: [Int] = []
  /// Called before memory is reserved.
  var onReserve: () -> Void = {}

  init(memory: MemoryBudget) { self.memory = memory }

  func reserve(_ byteCount: Int) async throws(PipelineError) -> Reservation {
    byteCounts.append(byteCount)
    onReserve()
    return try memory.reserveNow(byteCount)
  }
}
