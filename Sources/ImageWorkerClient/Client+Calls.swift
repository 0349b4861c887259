internal import FoundationEssentials
internal import GRPCCore
public import WorkerProtocol

// Methods that take `fields` run on the actor of their caller, as a closure that belongs to an actor, such as those at the
// top level of a program, must not leave it.
extension Client {
  /// Processes one image.
  /// - `timeout`: for all attempts together; `nil` for none.
  /// - `auxiliaryImages`: the files of the images that overlays name, by their names.
  /// - `fields`: sets fields, which override those of the preset.
  /// - Throws: ``ImageWorkerError``, or an error of reading the image.
  nonisolated(nonsending) public func process(
    _ image: ImageSource, preset: String = "", timeout: Duration? = .seconds(60),
    auxiliaryImages: [String: [UInt8]] = [:], fields: (inout Fields) -> Void = { _ in }
  ) async throws -> ImageResult {
    var request = ImageRequest(preset: preset, fields: fields)
    request.auxiliaryImages = auxiliaryImages
    let outcomes = try await outcomes(of: image, request, timeout)
    guard let outcome = outcomes[""] else { throw ImageWorkerError.lost("the stream ended before the result") }
    return try outcome.get()
  }

  /// Processes one image, and passes the parts of the result on as they arrive: a header, chunks, and a report.
  ///
  /// The call is not sent again after the first part. If it fails then, the chunks that have arrived are worthless.
  /// - `receive`: gets the parts; while it works, no more of them are received.
  /// - Throws: ``ImageWorkerError``, an error of reading the image, or what `receive` throws.
  nonisolated(nonsending) public func stream(
    _ image: ImageSource, preset: String = "", timeout: Duration? = .seconds(60),
    fields: (inout Fields) -> Void = { _ in }, receive: @escaping @Sendable (ResultPart) async throws -> Void
  ) async throws {
    try await parts(of: Upload(image), ImageRequest(preset: preset, fields: fields), timeout) { part in
      switch part.content {
      case .part(let part): try await receive(part)
      case .error(let error): throw error
      case nil: break
      }
    }
  }

  /// Processes one image to several results.
  ///
  /// It is uploaded and decoded once.
  /// - Returns: the result or error of each rendition by its id.
  /// - Throws: ``ImageWorkerError`` for an error of the whole image, or an error of reading it.
  public func renditions(
    _ image: ImageSource, _ renditions: [Rendition], timeout: Duration? = .seconds(60),
    auxiliaryImages: [String: [UInt8]] = [:]
  ) async throws -> [String: Result<ImageResult, ImageWorkerError>] {
    try await outcomes(of: image, ImageRequest(renditions: renditions, auxiliaryImages: auxiliaryImages), timeout)
  }

  /// The properties of an image and of the result that the fields would give.
  ///
  /// The first mebibyte of the file is sent, and the rest if the worker needs it: an AVIF is inspected as a whole. With
  /// `facts`, or `gainMap` set to `keep`, in `fields`, the whole file is sent at once; without them, the gain map of a JPEG is only
  /// found if it begins in the first mebibyte, as it follows the image.
  /// - Throws: ``ImageWorkerError``, or an error of reading the image.
  nonisolated(nonsending) public func inspect(
    _ image: ImageSource, preset: String = "", timeout: Duration? = .seconds(60),
    fields: (inout Fields) -> Void = { _ in }
  ) async throws -> Inspection {
    var request = Imageworker_V1_InspectImageRequest()
    request.preset = preset
    fields(&request.configuration)
    // Facts are those of all rows, and the gain map of a JPEG follows its image.
    let needsAll = request.configuration.facts || request.configuration.gainMap == .keep
    do {
      let reader = try Upload(image).open()
      request.image = try await reader.readExactly(needsAll ? Self.maxMessageByteCount : Upload.wholeByteCount)
      do { return try await inspect(request, timeout) } catch let error as ImageWorkerError
        where error.reason == "TRUNCATED_IMAGE"
      {
        // An AVIF is inspected as a whole, and a preset may have facts.
        let rest = try await reader.readExactly(Self.maxMessageByteCount)
        if rest.isEmpty { throw error }
        request.image += rest
      }
      return try await inspect(request, timeout)
    } catch let error as SourceError { throw error.error }
  }

  /// More than any worker takes in a message.
  private static let maxMessageByteCount = 1 << 30

  private func inspect(
    _ request: Imageworker_V1_InspectImageRequest, _ timeout: Duration?
  ) async throws -> Inspection {
    try await call(timeout) { worker, metadata, options in
      try await worker.stub.inspectImage(request, metadata: metadata, options: options)
    }
  }

  /// The presets that the worker has.
  /// - Throws: ``ImageWorkerError``.
  public func presets(timeout: Duration? = .seconds(60)) async throws -> [Preset] {
    try await call(timeout) { worker, metadata, options in
      try await worker.stub.listPresets(Imageworker_V1_ListPresetsRequest(), metadata: metadata, options: options)
    }.presets
  }

  private func call<Response: Sendable>(
    _ timeout: Duration?, _ method: (Worker, Metadata, CallOptions) async throws -> Response
  ) async throws -> Response {
    var retries = Retries(workers, timeout: timeout)
    while true {
      let outcome: Result<Response, ImageWorkerError> = try await workers.use { worker in
        let stallAfter = workers.retry.stallAfter
        let options = Workers.options(timeout: min(try retries.left() ?? stallAfter, stallAfter))
        let metadata = try await workers.metadata()
        do {
          let response = try await method(worker, metadata, options)
          workers.succeed(worker)
          return .success(response)
        } catch { return .failure(try await retries.wait(after: error, of: worker)) }
      }
      if case .success(let response) = outcome { return response }
    }
  }

  private func outcomes(
    of image: ImageSource, _ request: ImageRequest, _ timeout: Duration?
  ) async throws -> Outcomes {
    let collected = Collected(ResultCollector(renditionCount: request.renditions.count))
    do { try await parts(of: Upload(image), request, timeout) { collected.add($0) } } catch {
      // A worker that does not end the call takes nothing from results that are complete.
      guard case .outcomes = collected.end else { throw error }
    }
    switch collected.end {
    case .outcomes(let outcomes, _): return outcomes
    case .failure(let error): throw error
    case nil: throw ImageWorkerError.lost("the stream ended before all results")
    }
  }
}
