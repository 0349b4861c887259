internal import Admission
internal import ImagePipeline
internal import Tracing

/// The way to the server of one image, which is in this process or in a helper process.
protocol WorkChannel: AnyObject {
  /// The maximum number of the image's bytes that are lent with a request.
  var maxByteCount: Int { get }

  /// Sends a request and waits for its response; see `ImageServer.serve`.
  ///
  /// A request may be sent with a part of the bytes only; the response says how many were consumed.
  func serve(
    _ request: WorkRequest, _ bytes: RawSpan, isLast: Bool, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> WorkResponse
}

/// The direct way: a server in this process.
extension ImageServer: WorkChannel {
  var maxByteCount: Int { Self.windowByteCount }
}

extension WorkerEnvironment {
  /// Returns the way to the server of a new image: in a helper process if the worker isolates codecs.
  ///
  /// - `caller`: the client that the image belongs to.
  /// - `auxiliary`: the images that overlays name.
  func makeChannel(
    for caller: ImageCaller, _ cancellation: Cancellation, _ auxiliary: AuxiliaryImages, isPreview: Bool
  ) -> any WorkChannel {
    let tracing = TraceTarget(tracer: tracer, isPreview: isPreview)
    guard let helpers else {
      return ImageServer(limits: limits.image, cancellation: cancellation, tracing: tracing, auxiliary: auxiliary)
    }
    return HelperChannel(
      helpers, caller: caller.connection, limits: limits.image, memory: memory, cancellation: cancellation,
      tracing: tracing, recordsSpans: isTraced(tracing.context), auxiliary: auxiliary, waited: metrics.waited)
  }
}
