internal import FoundationEssentials
internal import ImagePipeline

/// Pictures with a preview before their result.
///
/// A preview is best effort: whatever goes wrong with it alone ends it, and the result goes on.
extension PictureProcessor {
  /// Gives the preview the next bytes of the picture, and the caller what they complete of it.
  func push(_ bytes: Data, isLast: Bool, to preview: inout Preview, _ progress: Progress) async throws {
    guard preview.isWorking else { return }
    preview.take(bytes, isLast: isLast)
    try await advance(&preview, progress)
  }

  /// Begins decoding it, if there is one.
  func start(_ preview: inout Preview, _ progress: Progress) async throws {
    guard preview.isWorking else { return }
    do throws(PipelineError) { try preview.start() } catch { return try await end(&preview, with: error) }
    try await advance(&preview, progress)
  }

  private func advance(_ preview: inout Preview, _ progress: Progress) async throws {
    do throws(PipelineError) { try preview.work() } catch { return try await end(&preview, with: error) }
    guard let rendition = preview.rendition else { return }
    let (parts, end) = preview.takeParts()
    if case .failure(let error)? = end { return try await self.end(&preview, with: error) }
    for part in parts { try await emit(part, rendition, false) }
    guard case .success(var report)? = end else { return }
    report.timings.queued = progress.queued
    report.timings.total = progress.began.duration(to: .now)
    try await emit(.report(report, traceID: environment.currentTraceID), rendition, false)
    environment.metrics.ended(previewWith: nil)
    preview.end()
    try await emitHeld(&preview)
  }

  /// Sets memory aside for the picture and its preview together, since two waits could each wait for the other.
  ///
  /// Where there is no room for both, for the picture alone.
  func queue(_ byteCount: Int, with preview: inout Preview) async throws -> Reservation {
    if let previewByteCount = preview.plannedByteCount {
      do throws(PipelineError) { return try await queue(byteCount + previewByteCount) } catch {
        guard error.code != .cancelled else { throw error }
        try await end(&preview, with: error)
      }
    }
    return try await queue(byteCount)
  }

  /// Gives a part of the result, at once or when the preview has ended.
  func emit(_ part: Part, _ rendition: Rendition, isMoreReady: Bool, after preview: inout Preview) async throws {
    if preview.isWorking {
      do throws(PipelineError) { return try preview.hold(part) } catch { try await end(&preview, with: error) }
    }
    try await emit(part, rendition, isMoreReady)
  }

  /// Gives the preview up, if it has not ended, and the caller what waited for it.
  func end(_ preview: inout Preview, with error: PipelineError) async throws {
    guard preview.isWorking else { return }
    try cancellation.check()
    preview.end()
    environment.metrics.ended(previewWith: error)
    try await emitHeld(&preview)
  }

  /// Gives the preview up, which was not begun, because there is no room for the picture.
  /// - Returns: whether that gives room.
  func giveWay(_ preview: inout Preview, after error: PipelineError) -> Bool {
    guard preview.isWorking else { return false }
    preview.end()
    environment.metrics.ended(previewWith: error)
    return true
  }

  /// Gives the preview up because its picture failed: what was ready of the result is told before, as without one.
  func abandon(_ preview: inout Preview, after error: PipelineError) async {
    guard preview.isWorking, preview.isStarted else { return preview.end() }
    preview.end()
    environment.metrics.ended(previewWith: error)
    // What keeps it from being told is not worth telling beside the picture's own error.
    if !cancellation.isCancelled { try? await emitHeld(&preview) }
  }

  private func emitHeld(_ preview: inout Preview) async throws {
    for part in preview.takeHeld() { try await emit(part, renditions[0], false) }
  }
}
