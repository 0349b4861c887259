internal import ImagePipeline
internal import SystemPackage
internal import WorkerTelemetry

/// One image of a local command: from its file to the files of its results.
struct LocalImage: Sendable {
  /// One result's file, and its outcome.
  struct Written: Sendable {
    /// The rendition's name; empty where there is but one result.
    let id: String
    /// `nil` where no file was begun.
    let destination: FilePath?
    let outcome: Outcome
  }

  enum Outcome: Sendable {
    case done(ProcessingReport)
    /// The file was there already.
    case skipped
    case failed(any Error)
  }

  let file: ImageFile
  let place: ResultPlace
  /// The results' name in a directory as text of a path, without suffix and extension.
  let name: String
  let requested: RequestedResults
  let destinations: Destinations
  let skipsExisting: Bool
  let isDurable: Bool

  /// Plans the results, waits for room for them, and writes them.
  /// - `admit`: is called with the bytes of memory that the image needs, before it is decoded.
  /// - Returns: each result in the order of the request, a preview first.
  /// - Throws: an error of the whole image.
  func run<Room: ~Copyable>(
    cancellation: Cancellation, trace: ChromeTrace?, admit: (UInt64) async throws -> Room
  ) async throws -> [Written] {
    let results = requested.results
    let file = file.with(requested.auxiliary, requested.limits)
    let plan = try file.plan(.renditions(results.map(\.configuration)))
    let previewPlan = requested.hasPreview ? (try? file.plan(preview)) : nil
    let places = zip(results, plan.renditions).map { result, plan in
      Result { try claim(result.suffix, try plan.get()) }
    }
    let missing = places.indices.filter { index in
      guard case .success(let place) = places[index] else { return false }
      return !(skipsExisting && FileSystem.isFile(place))
    }
    var written = places.enumerated().map { index, place in
      Written(
        id: results[index].id, destination: try? place.get(), outcome: place.outcomeWithoutWork)
    }
    guard !missing.isEmpty else { return written }
    let room = try await admit(max(plan.workingSetByteCount, previewPlan?.workingSetByteCount ?? 0))
    let began = ContinuousClock.now
    let tracing = TraceTarget(observer: trace?.observer(image: file.path.string))
    let madePreview = previewPlan.map { writePreview($0, cancellation, tracing) }
    let made = try write(
      .renditions(missing.map { results[$0].configuration }), ids: missing.map { results[$0].id },
      to: try missing.map { try places[$0].get() }, cancellation, tracing)
    for (index, result) in zip(missing, made) { written[index] = result }
    trace?.note("image", of: file.path.string, from: began, to: .now)
    _ = consume room
    return (madePreview.map { [$0] } ?? []) + written
  }

  /// The path of a result, which is set aside for it.
  private func claim(_ suffix: String, _ plan: Plan) throws -> FilePath {
    let path: FilePath
    switch place {
    case .directory(let directory):
      let paths = plan.fileExtensions.map { directory.appending(text: "\(name)\(suffix).\($0)") }
      // Without the format, any file that the result could be counts as this one.
      path = skipsExisting ? paths.first(where: FileSystem.isFile) ?? paths[0] : paths[0]
    case .file(let file, _): path = file
    case .standardOutput: return FilePath(StandardInput.name)
    }
    try destinations.claim(path, for: file.path)
    return path
  }

  /// Returns the path of a result whose format is known: another one than planned if its rows have chosen it.
  private func settle(_ planned: FilePath, _ report: ProcessingReport) throws -> FilePath {
    guard case .directory = place else { return planned }
    var path = planned
    path.extension = try LocalFormats.fileExtension(of: report.output.format)
    if path != planned { try destinations.claim(path, for: file.path) }
    return path
  }

  /// The request for a preview of the first result.
  private var preview: ImageFile.Request {
    .preview(requested.results[0].configuration, maxSide: ImageReader.maxPreviewSide)
  }

  /// A preview that fails does not keep the result from being made.
  private func writePreview(_ plan: ImagePlan, _ cancellation: Cancellation, _ tracing: TraceTarget) -> Written {
    do {
      let place = try claim(RequestedResults.previewSuffix, try plan.renditions[0].get())
      return try write(preview, ids: ["preview"], to: [place], cancellation, tracing)[0]
    } catch { return Written(id: "preview", destination: nil, outcome: .failed(error)) }
  }

  private func write(
    _ request: ImageFile.Request, ids: [String], to paths: [FilePath], _ cancellation: Cancellation,
    _ tracing: TraceTarget
  ) throws -> [Written] {
    let files = try paths.map { try ResultFile($0, in: place) }
    let outcomes = try file.with(requested.auxiliary, requested.limits).process(
      request, renditionIDs: ids.count > 1 ? ids : [], cancellation: cancellation, tracing: tracing
    ) { try files[$0].write($1) }
    return zip(zip(ids, zip(paths, files)), outcomes).map { target, outcome in
      let (id, (path, file)) = target
      do {
        let report = try outcome.get()
        let place = try settle(path, report)
        try file.complete(isDurable: isDurable, at: place)
        return Written(id: id, destination: place, outcome: .done(report))
      } catch { return Written(id: id, destination: path, outcome: .failed(error)) }
    }
  }
}

extension Result where Success == FilePath, Failure == any Error {
  /// The outcome of a result that nothing is to be done for.
  fileprivate var outcomeWithoutWork: LocalImage.Outcome {
    switch self {
    case .success: .skipped
    case .failure(let error): .failed(error)
    }
  }
}
