internal import Admission
internal import FoundationEssentials
internal import ImagePipeline

/// The job of one image, preceded by that of a preview if its rendition requests one.
///
/// The preview receives its bytes from a tee of the image's source, its memory together with the image's, and sends its
/// parts before the image's.
struct PreviewedJob {
  private let image: ImageJob
  private let source: PreviewTee?

  /// See `ImageJob.init`.
  init(
    _ renditions: [Rendition], from source: any ImageSource, to sink: any ResultSink, admission: any ImageAdmission,
    environment: WorkerEnvironment, cancellation: Cancellation, caller: ImageCaller = ImageCaller()
  ) {
    let tee = renditions[0].preview.map {
      let preview = PreviewJob(
        $0, of: source, environment: environment, caller: caller, cancellation: cancellation)
      let sink = PreviewFirstSink(sink, after: preview, environment: environment, cancellation: cancellation)
      return PreviewTee(source, to: preview, sink)
    }
    self.source = tee
    image = ImageJob(
      renditions, from: tee ?? source, to: tee?.sink ?? sink,
      admission: tee.map { PreviewAdmission(image: admission, source: $0) } ?? admission, environment: environment,
      cancellation: cancellation, caller: caller)
  }

  /// See `ImageJob.run`.
  func run() async throws {
    source?.preview.clock = JobClock()
    do { try await image.run() } catch {
      if let error = error as? PipelineError { await source?.sink.abandon(after: error) }
      throw error
    }
  }
}

/// Supplies the bytes of another source to a preview, and forwards them to the image.
///
/// A preview that is not started receives bytes when the next ones are requested, or when memory is: it is not begun for
/// an image whose result is in the cache.
final class PreviewTee: ImageSource {
  private let source: any ImageSource
  let preview: PreviewJob
  let sink: PreviewFirstSink
  /// The bytes that were forwarded and not supplied to the preview.
  private var pending: (bytes: Data, isLast: Bool)?
  private var hasBegun = false

  init(_ source: any ImageSource, to preview: PreviewJob, _ sink: PreviewFirstSink) {
    self.source = source
    self.preview = preview
    self.sink = sink
  }

  var isComplete: Bool { source.isComplete }
  var whole: Data? { source.whole }
  var bufferedByteCount: Int { source.bufferedByteCount }

  func next() async throws -> (bytes: Data, isLast: Bool) {
    if !hasBegun {
      hasBegun = true
      preview.clock.queued = preview.clock.began.duration(to: .now)
    }
    supplyPending()
    let (bytes, isLast) = try await source.next()
    if preview.isStarted { try await sink.push(bytes, isLast: isLast) } else { pending = (bytes, isLast) }
    return (bytes, isLast)
  }

  func makeRoom(after error: PipelineError) -> Bool { sink.makeRoom(after: error) }

  /// Supplies the bytes that the image has received to a preview that is not started.
  func supplyPending() {
    guard let (bytes, isLast) = pending.take() else { return }
    sink.supplyHeader(bytes, isLast: isLast)
  }
}

/// Reserves memory for an image and its preview together.
///
/// Two separate waits could deadlock with those of another job. If there is no room for both, the preview ends and
/// memory is reserved for the image alone.
private struct PreviewAdmission: ImageAdmission {
  let image: any ImageAdmission
  let source: PreviewTee

  func mayWaitForProcess() -> Bool { image.mayWaitForProcess() }

  func reserve(_ byteCount: Int, cancellation: Cancellation) async throws(PipelineError) -> Reservation {
    let asked = ContinuousClock.now
    defer { source.preview.clock.queued += asked.duration(to: .now) }
    source.supplyPending()
    if let previewByteCount = source.preview.plannedByteCount {
      do throws(PipelineError) {
        return try await image.reserve(byteCount + previewByteCount, cancellation: cancellation)
      } catch {
        guard error.code != .cancelled else { throw error }
        source.sink.discard(error)
      }
    }
    return try await image.reserve(byteCount, cancellation: cancellation)
  }
}
