import Admission
import Foundation
import ImagePipeline
import TestSupport

@testable import WorkerService

/// Supplies an image from memory in portions.
final class PortionedSource: ImageSource {
  private var portions: [Data]
  /// The error that `next` throws after the last portion; `nil` to end normally.
  var failure: (any Error)?
  var isComplete = false
  let bufferedByteCount: Int

  /// Creates a source whose portions have `byteCount` bytes.
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

/// Records the parts that it receives.
final class RecordingSink: ResultSink {
  private(set) var parts: [ResultPart] = []
  /// Called with each part.
  var onPart: (ResultPart) throws -> Void = { _ in }

  func send(_ part: ResultPart) async throws {
    parts.append(part)
    try onPart(part)
  }

  /// The kind of each part, with a tilde before those of previews.
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

  /// The bytes of the result, without the preview.
  var bytes: Data {
    parts.reduce(into: Data()) { bytes, part in
      if case .chunk(let chunk) = part.content, !part.rendition.isPreview { bytes += chunk }
    }
  }

  var reports: [ResultReport] {
    parts.compactMap { if case .report(let report) = $0.content { report } else { nil } }
  }
}

/// Admits every image at once and records the requested memory.
final class RecordingAdmission: ImageAdmission {
  private let memory: MemoryBudget
  private(set) var byteCounts: [Int] = []
  /// Called before memory is reserved.
  var onReserve: () -> Void = {}

  init(memory: MemoryBudget) { self.memory = memory }

  func reserve(_ byteCount: Int, cancellation: Cancellation) async throws(PipelineError) -> Reservation {
    byteCounts.append(byteCount)
    onReserve()
    return try memory.reserveNow(byteCount)
  }
}

/// Returns an image with a box of `byteCount` bytes, which readers skip, before those that describe it.
func paddedImage(byteCount: Int) -> [UInt8] {
  let file = Fixture.bytes("gray.heic")
  let typeByteCount = file.prefix(4).reduce(0) { $0 << 8 | Int($1) }
  let size = (0..<4).map { UInt8(truncatingIfNeeded: byteCount >> (24 - 8 * $0)) }
  let padding = size + Array("free".utf8) + [UInt8](repeating: 0, count: byteCount - 8)
  return Array(file[..<typeByteCount]) + padding + Array(file[typeByteCount...])
}
