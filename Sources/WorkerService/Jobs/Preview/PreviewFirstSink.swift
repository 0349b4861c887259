internal import Admission
internal import FoundationEssentials
internal import ImagePipeline

/// Sends the parts of an image's preview, and those of its result once the preview has ended.
///
/// A preview is best effort: an error that concerns the preview alone ends the preview, and the result continues.
final class PreviewFirstSink: ResultSink {
  private let next: any ResultSink
  private let preview: PreviewJob
  private let cancellation: Cancellation
  private let metrics: WorkerMetrics
  /// Whether parts of the result must wait for the preview: from its first bytes to its end.
  private var isWaiting = false
  private var buffered: [ResultPart] = []
  private var bufferedByteCount = 0
  private var reservation: Hold

  /// The maximum memory of a part in addition to its bytes.
  private static let partByteCount = 256

  /// Creates a sink that forwards to `next`.
  init(
    _ next: any ResultSink, after preview: PreviewJob, environment: WorkerEnvironment, cancellation: Cancellation
  ) {
    self.next = next
    self.preview = preview
    self.cancellation = cancellation
    metrics = environment.metrics
    reservation = Hold(budget: environment.memory)
  }

  func send(_ part: ResultPart) async throws {
    switch part.content {
    case .header: try await forward { (preview) throws(PipelineError) in try preview.start() }
    // A complete result makes the preview useless.
    case .report: try await end(with: .cancelled)
    case .chunk, .failure: break
    }
    if isWaiting {
      do throws(PipelineError) { return try buffer(part) } catch { try await end(with: error) }
    }
    try await sendBuffered()
    try await next.send(part)
  }

  // MARK: The preview

  /// Supplies bytes of the image to a preview that is not started yet, and so completes no part.
  func supplyHeader(_ bytes: Data, isLast: Bool) {
    do throws(PipelineError) { _ = try preview.push(bytes, isLast: isLast) } catch { discard(error) }
    isWaiting = !preview.hasEnded
  }

  /// Supplies bytes of the image to the preview, and sends what it completes.
  func push(_ bytes: Data, isLast: Bool) async throws {
    guard preview.isStarted else { return supplyHeader(bytes, isLast: isLast) }
    try await forward { (preview) throws(PipelineError) in try preview.push(bytes, isLast: isLast) }
  }

  /// Sends the parts that a step of the preview completes, then those that waited if it has ended.
  private func forward(_ step: (PreviewJob) throws(PipelineError) -> [ResultPart]) async throws {
    guard isWaiting else { return }
    let parts: [ResultPart]
    do throws(PipelineError) { parts = try step(preview) } catch { return try await end(with: error) }
    for part in parts { try await next.send(part) }
    guard preview.hasEnded else { return }
    metrics.ended(previewWith: nil)
    isWaiting = false
    try await sendBuffered()
  }

  /// Ends the preview to release its memory, unless it is started.
  /// - Returns: Whether it was ended.
  func makeRoom(after error: PipelineError) -> Bool {
    guard isWaiting, !preview.isStarted else { return false }
    discard(error)
    return true
  }

  /// Ends the preview because its image failed.
  ///
  /// The available parts of the result are sent before the error, as they are without a preview.
  func abandon(after error: PipelineError) async {
    guard isWaiting, preview.isStarted else { return preview.end() }
    discard(error)
    // An error of sending these parts matters less than the image's own error.
    if !cancellation.isCancelled { try? await sendBuffered() }
  }

  private func end(with error: PipelineError) async throws {
    guard isWaiting else { return }
    try cancellation.check()
    discard(error)
    try await sendBuffered()
  }

  /// Ends the preview without its parts.
  func discard(_ error: PipelineError) {
    preview.end()
    isWaiting = false
    metrics.ended(previewWith: error)
  }

  // MARK: The result

  /// Buffers a part of the result.
  /// - Throws: `overloaded` or `limitExceeded` if there is no room for the part.
  private func buffer(_ part: ResultPart) throws(PipelineError) {
    bufferedByteCount += Self.partByteCount
    if case .chunk(let bytes) = part.content { bufferedByteCount += bytes.count }
    try reservation.grow(to: bufferedByteCount)
    buffered.append(part)
  }

  private func sendBuffered() async throws {
    guard !buffered.isEmpty else { return }
    let parts = buffered
    (buffered, bufferedByteCount) = ([], 0)
    defer { reservation.release() }
    for part in parts { try await next.send(ResultPart(part.content, of: part.rendition)) }
  }
}
