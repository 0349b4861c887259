internal import FoundationEssentials
internal import GRPCCore
internal import ImageCodecs
internal import ImagePipeline
internal import ImageWorkerClient
internal import SystemPackage
internal import WorkerOperations
internal import WorkerProtocol
internal import WorkerService

/// One image of a batch that workers process: from its file to the files of its results.
struct RemoteImage: Sendable {
  /// An image, and its file when it was read.
  struct Key: Sendable {
    let image: BatchImage
    let version: FileSystem.Version?
  }

  let result: BatchResult<Key>
  let output: BatchOutput

  /// The item that requests the results.
  /// - Throws: an error of a configuration that the contract does not know.
  static func item(_ image: BatchImage, _ requested: RequestedResults) throws -> Item<Key> {
    let source = ImageSource.file(image.path)
    let key = Key(image: image, version: FileSystem.version(of: image.path))
    let renditions = try requested.results.map {
      Rendition($0.id, preset: $0.preset, fields: try Fields($0.overrides))
    }
    var item: Item<Key>
    if let single = renditions.first, single.id.isEmpty {
      item = Item(key, source, preset: single.preset, hasPreview: requested.hasPreview) { $0 = single.fields }
    } else {
      item = Item(key, source, renditions: renditions)
    }
    for image in requested.auxiliary.all {
      item.auxiliaryImages[image.name] = try image.withBytes { bytes in bytes.withUnsafeBytes { [UInt8]($0) } }
    }
    return item
  }

  /// Writes the results.
  /// - Returns: the outcome of each, in the order of the request, a preview first.
  func write() -> [ResultLine] {
    let image = result.key.image
    let requested = output.requested(of: image)
    var lines: [ResultLine]
    do {
      let outcomes = try result.outcomes.get()
      let folder = try output.folders.prepare(image.folder)
      lines = try requested.results.map { request in
        guard let outcome = outcomes[request.id] else { throw RemoteError.missing }
        var line = line(request.id, folder, suffix: request.suffix) { try outcome.get() }
        line.isQualityChosen = request.configuration.choosesQuality(line.quality)
        return line
      }
      if let preview = result.preview {
        lines.insert(line("preview", folder, suffix: RequestedResults.previewSuffix) { preview }, at: 0)
      }
    } catch { lines = [ResultLine(image, failure: error)] }
    do { try output.note(image, result.key.version, lines) } catch { lines.append(ResultLine(image, failure: error)) }
    for index in lines.indices {
      lines[index].worker = result.worker.isEmpty ? nil : result.worker
      lines[index].attempts = result.attempts
    }
    return lines
  }

  private func line(
    _ id: String, _ folder: FilePath, suffix: String, _ outcome: () throws -> ImageResult
  ) -> ResultLine {
    let image = result.key.image
    var line: ResultLine
    do {
      let outcome = try outcome()
      let place = folder.appending(
        text: "\(image.name)\(suffix).\(try LocalFormats.fileExtension(of: outcome.format))")
      try output.destinations.claim(place, for: image.path)
      let file = try PartialFile(place)
      try file.write(outcome.data.bytes)
      try file.complete(isDurable: true)
      line = ResultLine(image, outcome, inputByteCount: self.result.key.version?.byteCount ?? 0, output: place)
    } catch { line = ResultLine(image, failure: error) }
    line.rendition = id.isEmpty ? nil : id
    return line
  }
}

extension ImageWorkerError {
  /// The reason, or else the name of the status code, as in `DATA_LOSS`.
  fileprivate var statusName: String { reason.isEmpty ? code.name : reason }
}

/// A response without a result that can be used.
enum RemoteError: Error, CustomStringConvertible {
  case missing
  /// The format is none that results have.
  case unknownFormat(String)

  var description: String {
    switch self {
    case .missing: "the worker sent no result"
    case .unknownFormat(let name):
      "the worker sent a result of the format \"\(name.prefix(64))\"; it must be "
        + ImageFormat.allCases.filter { $0.traits.output != nil }.map(\.rawValue).joined(separator: ", ")
    }
  }
}

extension ResultLine {
  /// The outcome of a result that a worker produced.
  /// - `inputByteCount`: the size of the image's file, because the sizes of all images are added.
  init(_ image: BatchImage, _ result: ImageResult, inputByteCount: UInt64, output: FilePath) {
    self.init(image, .done, output: output)
    let report = result.report
    (inputFormat, format) = (report.input.format, report.output.format)
    (inputWidth, inputHeight) = (Int(report.input.width), Int(report.input.height))
    (width, height) = (Int(report.output.width), Int(report.output.height))
    setBytes(of: image, read: min(report.inputBytes, inputByteCount), output: UInt64(result.data.count))
    passthrough = report.passthrough
    quality = report.hasCompressionQuality ? finite(report.compressionQuality) : nil
    similarity = report.hasSimilarity ? finite(report.similarity) : nil
    crop = report.hasCrop ? PixelRect(report.crop) : nil
    hiddenRegions = report.hiddenRegions.isEmpty ? nil : report.hiddenRegions.compactMap { PixelRect($0) }
    faces = report.faces.isEmpty ? nil : report.faces.compactMap { PixelRect($0) }
    gainMapBytes = report.gainMapBytes == 0 ? nil : min(report.gainMapBytes, UInt64(result.data.count))
    tensor = ImageInfo(plausible: report.output)?.tensor.map { TensorLine($0) }
    facts = report.hasFacts && report.facts.isPlausible ? FactsLine(ImageFacts(report.facts)) : nil
    peakMemoryBytes = report.peakMemoryBytes
    let times = result.stageTimes
    timings = Self.milliseconds([
      "decode": times.decode, "resize": times.resize, "filter": times.filter, "encode": times.encode,
      "total": times.total,
    ])
    milliseconds = timings?["total"]
    note(Warning.all(of: report))
  }

  /// A number that a worker reports; `nil` for one that JSON cannot contain.
  private func finite(_ number: Double) -> Double? { number.isFinite ? number : nil }

  /// The outcome of an image that has no result.
  init(_ image: BatchImage, failure: any Error) {
    guard let error = failure as? ImageWorkerError else {
      self.init(image, failure)
      return
    }
    let isNoImage = ["UNKNOWN_FORMAT", "EMPTY_IMAGE"].contains(error.reason)
    self.init(image, isNoImage && image.mayBeNoImage ? .ignored : .failed, output: nil)
    reason = error.limitName == ImageWorkerError.maxResultBytes ? "LIMIT_EXCEEDED" : error.statusName
    let hint = error.limitName == ImageWorkerError.maxResultBytes ? "; raise --max-result-mib if that is expected" : ""
    self.error = Failure(code: reason ?? "", message: error.message + hint)
  }
}
