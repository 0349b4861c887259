internal import Admission
internal import AsyncAlgorithms
internal import FoundationEssentials
internal import ImagePipeline

/// Supplies the bytes of an item as they arrive on its stream.
///
/// After the first bytes the item may hold memory. From then on, each wait for more bytes has a deadline.
final class UploadSource: ImageSource {
  private let item: BatchItem
  private let table: ItemTable
  private let progress: ProgressDeadline
  private var chunks: AsyncChannel<Data>.Iterator
  private var reservation: Hold
  private var hasBytes = false

  /// The maximum size of a chunk in bytes that is not charged to the memory budget.
  private static let freeChunkByteCount = 1 << 20
  private let isCharged: Bool
  private let waited: WaitObserver
  /// The duration of all waits for bytes.
  private var waitTime = Duration.zero

  init(
    _ item: BatchItem, chunks: AsyncChannel<Data>, table: ItemTable, progress: ProgressDeadline,
    memory: MemoryBudget, waited: @escaping WaitObserver
  ) {
    self.item = item
    self.table = table
    self.progress = progress
    self.chunks = chunks.makeAsyncIterator()
    isCharged = memory.receivesMessages
    reservation = Hold(budget: memory)
    self.waited = waited
  }

  deinit { waited(.input, waitTime) }

  var isComplete: Bool { table.isComplete(item) }
  var bufferedByteCount: Int { 0 }

  func next() async throws -> (bytes: Data, isLast: Bool) {
    if hasBytes { progress.beginWait(of: item.id) }
    let asked = ContinuousClock.now
    let bytes = await chunks.next()
    waitTime += asked.duration(to: .now)
    progress.endWait(of: item.id, tookSupply: bytes != nil)
    if let bytes {
      hasBytes = true
      if !isCharged, bytes.count > Self.freeChunkByteCount { try reservation.grow(to: bytes.count) }
      return (bytes, false)
    }
    try item.checkCancellation()
    // Checked first: chunks that arrived after the timeout were dropped.
    if let limit = progress.limit, progress.hasExpired(item.id) { throw progress.error(limit) }
    guard isComplete else {
      throw PipelineError(
        .truncatedImage, "the stream ended before the item did; send its end", field: "image", of: .message)
    }
    return (Data(), true)
  }
}

extension ProgressDeadline {
  /// Returns the error of an upload that sent too few bytes within the limit.
  fileprivate func error(_ limit: Duration) -> PipelineError {
    let seconds = UInt64(clamping: limit.components.seconds)
    let progress = minBytesPerSecond > 0 ? "fewer than \(minBytesPerSecond) bytes per second" : "no bytes"
    return PipelineError(
      .uploadStalled,
      "the upload sent \(progress) for \(limit), the limit upload_timeout_seconds; send it again",
      limit: PipelineError.Limit(name: "upload_timeout_seconds", limit: seconds, value: seconds))
  }
}
