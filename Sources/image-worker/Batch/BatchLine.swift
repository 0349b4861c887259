internal import FoundationEssentials
internal import ImagePipeline
internal import SystemPackage

/// The outcome of one result of a batch.
struct BatchLine: Sendable, Encodable {
  enum Status: String, Sendable, Encodable, CaseIterable {
    case done, failed
    /// Its result was there already.
    case skipped
    /// Found in a folder, and no image.
    case ignored
  }

  struct Failure: Sendable, Encodable {
    var code: String
    var message: String
  }

  var input: String
  /// The result's rendition, or `preview`.
  var rendition: String?
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

  /// The outcome of a result.
  init(_ image: BatchImage, _ written: LocalImage.Written) {
    switch written.outcome {
    case .done(let report): self.init(image, report, output: written.destination)
    case .skipped: self.init(image, .skipped, output: written.destination)
    case .failed(let error): self.init(image, error)
    }
    rendition = written.id.isEmpty ? nil : written.id
  }

  /// The outcome of an image that has no result.
  init(_ image: BatchImage, _ error: any Error) {
    let known = error as? PipelineError
    var isNoImage = known?.code == .unknownFormat
    if case .noRegularFile? = error as? BatchProblem { isNoImage = true }
    self.init(image, image.isFound && isNoImage ? .ignored : .failed, output: nil)
    self.error = Failure(code: known?.code.rawValue ?? "FILE", message: known?.optionMessage ?? "\(error)")
  }

  private init(_ image: BatchImage, _ status: Status, output: FilePath?) {
    input = image.path.string
    self.status = status
    self.output = output?.string
  }

  private init(_ image: BatchImage, _ report: ProcessingReport, output: FilePath?) {
    self.init(image, .done, output: output)
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
    if let error, status == .failed { return FileSystem.printError("\(name): \(error.code): \(error.message)") }
    try Self.write("\(name): \(summary)" + (warnings ?? []).map { "\n  warning: \($0)" }.joined())
  }

  private var name: String { rendition.map { "\(input): \($0)" } ?? input }

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

/// The number of results of a batch with each status.
struct BatchCounts: CustomStringConvertible {
  private var counts: [BatchLine.Status: Int] = [:]

  subscript(_ status: BatchLine.Status) -> Int { counts[status] ?? 0 }

  mutating func add(_ status: BatchLine.Status) { counts[status, default: 0] += 1 }

  var description: String {
    BatchLine.Status.allCases.filter { self[$0] > 0 || $0 == .done }.map { "\(self[$0]) \($0.rawValue)" }
      .joined(separator: ", ")
  }
}
