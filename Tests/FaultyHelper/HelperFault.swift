import ImagePipeline
import WorkerIsolation

/// A fault that an image causes.
enum HelperFault: String, CaseIterable {
  /// The text at the beginning of such an image, before the name of the fault and a line feed.
  static let marker = "image-worker fault: "

  /// Ends the process by a trap, as a defect in a codec does.
  case trap
  /// Uses CPU time without end, between strips.
  case spin
  /// Waits without end and without CPU time.
  case hang
  /// Allocates memory without end.
  case eat
  /// Tries everything that the sandbox must refuse, and reports it; see `attempts(in:)`.
  case escape

  init?(_ bytes: RawSpan) {
    guard let line = Self.line(bytes) else { return nil }
    self.init(rawValue: line)
  }

  /// The text behind the marker; `nil` if an image does not begin with it.
  static func line(_ bytes: RawSpan) -> String? {
    let longest = Self.marker.utf8.count + 64
    let text = (0..<min(bytes.byteCount, longest)).map { bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
    let line = String(decoding: text.prefix { $0 != 0x0A }, as: UTF8.self)
    return line.hasPrefix(marker) ? String(line.dropFirst(marker.count)) : nil
  }

  /// - Returns: The error to respond with.
  func commit() -> PipelineError {
    switch self {
    case .trap: fatalError("a fault that a test requested")
    case .spin: while true { Self.work += 1 }
    case .hang: HelperConnection.wait()
    case .eat:
      var blocks: [[UInt8]] = []
      while true { blocks.append([UInt8](repeating: UInt8(truncatingIfNeeded: blocks.count), count: 1 << 20)) }
    case .escape:
      let lines = HelperConnection.attempts().map { "\($0)\t\($1)" }
      return PipelineError(.internalDefect, Self.reportMark + lines.joined(separator: "\n"))
    }
  }

  private static let reportMark = "attempts:\n"

  /// Returns the error number of each attempt by its name; none if the helper has not tried anything.
  static func attempts(in error: PipelineError?) -> [String: Int32] {
    guard let report = error?.message, report.hasPrefix(reportMark) else { return [:] }
    let lines = report.dropFirst(reportMark.count).split(separator: "\n").map { $0.split(separator: "\t") }
    return lines.reduce(into: [:]) { attempts, line in attempts[String(line[0])] = Int32(line[1]) ?? 0 }
  }

  nonisolated(unsafe) private static var work: UInt64 = 0
}
