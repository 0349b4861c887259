internal import FoundationEssentials
internal import ImagePipeline
internal import SystemPackage

/// What became of one picture of a batch.
struct BatchLine: Sendable, Encodable {
  enum Status: String, Sendable, Encodable, CaseIterable {
    case done, failed
    /// Its result was there already.
    case skipped
    /// Found in a folder, and no picture.
    case ignored
  }

  struct Failure: Sendable, Encodable {
    var code: String
    var message: String
  }

  var input: String
  var status: Status
  var output: String?
  var error: Failure?
  var format: String?
  var inputWidth: Int?
  var inputHeight: Int?
  var inputBytes: UInt64?
  var width: Int?
  var height: Int?
  var outputBytes: UInt64?
  /// Not decoded, as it met its configuration already.
  var passthrough: Bool?
  var peakMemoryBytes: UInt64?
  /// Milliseconds that each stage was busy, and from the first byte to the last.
  var timings: [String: Double]?
  var warnings: [String]?

  init(_ picture: BatchPicture, _ status: Status, output: FilePath? = nil) {
    input = picture.path.string
    self.status = status
    self.output = output?.string
  }

  init(_ picture: BatchPicture, _ error: any Error) {
    let known = error as? PipelineError
    let isIgnored = picture.isFound && known?.code == .unknownFormat
    self.init(picture, isIgnored ? .ignored : .failed)
    self.error = Failure(code: known?.code.rawValue ?? "FILE", message: known?.message ?? "\(error)")
  }

  init(_ picture: BatchPicture, _ report: ProcessingReport, output: FilePath) {
    self.init(picture, .done, output: output)
    format = report.output.format
    (inputWidth, inputHeight) = (report.input.size.width, report.input.size.height)
    (width, height) = (report.output.size.width, report.output.size.height)
    (inputBytes, outputBytes) = (report.inputByteCount, report.outputByteCount)
    passthrough = report.isPassedThrough
    peakMemoryBytes = report.peakMemoryByteCount
    timings = [
      "decode": report.timings.decode, "resize": report.timings.resize, "filter": report.timings.filter,
      "encode": report.timings.encode, "total": report.timings.total,
    ].mapValues { Double(($0 / .microseconds(1)).rounded()) / 1000 }
    warnings = report.warnings
  }

  /// Errors go to standard error, unless they are JSON.
  func print(asJSON: Bool) throws {
    if asJSON {
      let encoder = JSONEncoder()
      encoder.keyEncodingStrategy = .convertToSnakeCase
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return try Self.write(String(decoding: try encoder.encode(self), as: UTF8.self))
    }
    if let error, status == .failed { return FileSystem.printError("\(input): \(error.code): \(error.message)") }
    try Self.write("\(input): \(summary)" + (warnings ?? []).map { "\n  warning: \($0)" }.joined())
  }

  private var summary: String {
    guard status == .done, let output, let inputWidth, let inputHeight, let width, let height, let inputBytes,
      let outputBytes
    else { return output.map { "\(status.rawValue), \($0) is there" } ?? status.rawValue }
    return "\(inputWidth)x\(inputHeight), \(inputBytes) bytes -> \(output): \(width)x\(height), \(outputBytes) bytes"
  }

  /// At once, so that whoever follows the batch sees it grow.
  static func write(_ line: String) throws {
    _ = try FileDescriptor.standardOutput.writeAll((line + "\n").utf8)
  }
}

/// How many pictures of a batch came to what.
struct BatchCounts: CustomStringConvertible {
  private var counts: [BatchLine.Status: Int] = [:]

  subscript(_ status: BatchLine.Status) -> Int { counts[status] ?? 0 }

  mutating func add(_ status: BatchLine.Status) { counts[status, default: 0] += 1 }

  var description: String {
    BatchLine.Status.allCases.filter { self[$0] > 0 || $0 == .done }.map { "\(self[$0]) \($0.rawValue)" }
      .joined(separator: ", ")
  }
}
