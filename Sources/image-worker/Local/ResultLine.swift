internal import FoundationEssentials
internal import ImagePipeline
internal import SystemPackage
internal import WorkerTelemetry

/// The outcome of one result of `process` or `batch`.
struct ResultLine: Sendable, Encodable {
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
  /// The reason of the error, as `Errors.md` lists them; `FILE` for an error of the file system.
  var reason: String?
  var inputFormat: String?
  var format: String?
  var inputWidth: Int?
  var inputHeight: Int?
  /// The size of the image's file; of standard input, what was read of it.
  var inputBytes: UInt64?
  /// The number of bytes that were read: less than all for a part of an image, or the first of several.
  var readBytes: UInt64?
  var width: Int?
  var height: Int?
  var outputBytes: UInt64?
  /// Not decoded, as it met its configuration already.
  var passthrough: Bool?
  var peakMemoryBytes: UInt64?
  /// Milliseconds that each stage was busy, and from the first byte to the last.
  var timings: [String: Double]?
  /// Milliseconds from the first byte to the last.
  var milliseconds: Double?
  /// The quality of the result's encoder; `nil` for a result that is lossless or was not encoded.
  var quality: Double?
  /// Whether the quality differs from the requested one because of a limit on the result's size or a target for its
  /// similarity; people read of it then.
  var isQualityChosen = false
  /// The similarity of the result to its uncompressed rows, if there is a target for it.
  var similarity: Double?
  /// The part of the displayed image that was chosen by its pixels, if one was.
  var crop: PixelRect?
  /// The rectangles around what regions have hidden, in pixels of the displayed image.
  var hiddenRegions: [PixelRect]?
  /// The faces that were found, in pixels of the displayed image.
  var faces: [PixelRect]?
  /// The size of the HDR gain map that the result contains, if it has one.
  var gainMapBytes: UInt64?
  /// The facts about the image, if they were requested.
  var facts: FactsLine?
  /// The layout of a raw result.
  var tensor: TensorLine?
  /// The messages of `warningDetails`.
  var warnings: [String]?
  var warningDetails: [Warning]?
  /// The address of the worker that processed the image.
  var worker: String?
  /// The number of times that the image was sent to a worker.
  var attempts: Int?
  /// Further lines of text after this one.
  var details: String?

  private enum CodingKeys: CodingKey {
    case input, rendition, status, output, error, reason, inputFormat, format, inputWidth, inputHeight, inputBytes,
      readBytes
    case width, height, outputBytes, passthrough, peakMemoryBytes, timings, milliseconds, quality, similarity, warnings
    case worker, attempts, warningDetails, crop, hiddenRegions, faces, gainMapBytes, facts, tensor
  }

  /// The outcome of a result.
  /// - `showsStages`: whether a table of the stages follows the line.
  init(
    _ image: BatchImage, _ written: LocalImage.Written, _ requested: RequestedResults, showsStages: Bool = false
  ) {
    switch written.outcome {
    case .done(let report):
      self.init(image, report, output: written.destination)
      let configuration = requested.results.first { $0.id == written.id }?.configuration
      quality = report.compressionQuality
      isQualityChosen = configuration?.choosesQuality(report.compressionQuality) ?? false
      similarity = report.similarity
      (crop, facts) = (report.crop, report.facts.map { FactsLine($0) })
      hiddenRegions = report.hiddenRegions.isEmpty ? nil : report.hiddenRegions
      faces = report.faces.isEmpty ? nil : report.faces
      gainMapBytes = report.gainMapByteCount == 0 ? nil : report.gainMapByteCount
      details = showsStages ? StageTable(report: report).text : nil
    case .skipped: self.init(image, .skipped, output: written.destination)
    case .failed(let error): self.init(image, error)
    }
    rendition = written.id.isEmpty ? nil : written.id
  }

  /// The outcome of an image that has no result.
  init(_ image: BatchImage, _ error: any Error) {
    let known = error as? PipelineError
    var isIgnored = image.mayBeNoImage && [.unknownFormat, .emptyImage].contains(known?.code)
    if case .noRegularFile? = error as? BatchProblem { isIgnored = image.isFound }
    self.init(image, isIgnored ? .ignored : .failed, output: nil)
    self.error = Failure(code: known?.code.rawValue ?? "FILE", message: known?.optionMessage ?? "\(error)")
    reason = self.error?.code
  }

  /// An image whose result an earlier run wrote.
  init(skipped image: BatchImage, output: FilePath, rendition: String?) {
    self.init(image, .skipped, output: output)
    self.rendition = rendition
  }

  /// A file that an earlier run found to be no image.
  init(ignored image: BatchImage) { self.init(image, .ignored, output: nil) }

  init(_ image: BatchImage, _ status: Status, output: FilePath?) {
    input = image.path.text
    self.status = status
    self.output = output?.text
  }

  private init(_ image: BatchImage, _ report: ProcessingReport, output: FilePath?) {
    self.init(image, .done, output: output)
    (inputFormat, format) = (report.input.format, report.output.format)
    (inputWidth, inputHeight) = (report.input.size.width, report.input.size.height)
    (width, height) = (report.output.size.width, report.output.size.height)
    setBytes(of: image, read: report.inputByteCount, output: report.outputByteCount)
    tensor = report.output.tensor.map { TensorLine($0) }
    passthrough = report.isPassedThrough
    peakMemoryBytes = report.peakMemoryByteCount
    timings = Self.milliseconds([
      "decode": report.timings.decode, "resize": report.timings.resize, "filter": report.timings.filter,
      "encode": report.timings.encode, "total": report.timings.total,
    ])
    milliseconds = timings?["total"]
    note(report.warnings)
  }

  mutating func note(_ found: [Warning]) {
    let found = found.map(\.withOptions)
    warnings = found.map(\.message)
    warningDetails = found
  }

  mutating func setBytes(of image: BatchImage, read: UInt64, output: UInt64) {
    (readBytes, outputBytes) = (read, output)
    inputBytes = FileSystem.version(of: image.path)?.byteCount ?? read
  }

  static func milliseconds(_ times: [String: Duration]) -> [String: Double] {
    times.mapValues { Double(($0 / .microseconds(1)).rounded()) / 1000 }
  }

  /// The line for people; a warning has its own line below.
  var text: String {
    if let error, status == .failed { return "\(name): \(error.code): \(error.message)".singleLine }
    return "\(name): \(summary)".singleLine + (warnings ?? []).map { "\n  warning: \($0.singleLine)" }.joined()
      + (details.map { "\n\($0)" } ?? "")
  }

  /// The input, and the result if there are several.
  var name: String { rendition.map { "\(input): \($0)" } ?? input }

  private var summary: String {
    guard status == .done, let output, let inputFormat, let inputWidth, let inputHeight, let width, let height,
      let inputBytes, let outputBytes
    else { return output.map { "\(status.rawValue), \($0) exists" } ?? status.rawValue }
    return "\(inputFormat) \(inputWidth)x\(inputHeight), \(inputBytes) bytes"
      + " -> \(output): \(width)x\(height), \(outputBytes) bytes"
      + (isQualityChosen ? quality.map { ", quality \($0)" } ?? "" : "")
      + (similarity.map { ", similarity \($0)" } ?? "")
  }
}

extension ProcessingConfiguration {
  /// Whether a result's quality was chosen: searched for a limit or a target, or lowered by the rule that a result is
  /// never larger than its image.
  func choosesQuality(_ quality: Double?) -> Bool {
    guard let quality else { return false }
    return maxBytes != nil || targetSimilarity != nil
      || neverLarger ?? false && quality < (compressionQuality ?? 1)
  }
}
