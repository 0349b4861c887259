internal import AsyncAlgorithms
internal import FoundationEssentials
internal import ImagePipeline

/// Supplies the bytes of an item as they arrive on its stream.
final class UploadSource: ImageSource {
  private let item: BatchItem
  private let table: ItemTable
  private var chunks: AsyncChannel<Data>.Iterator
  private var reservation: Hold

  /// Larger chunks are charged while they wait.
  private static let freeChunkByteCount = 1 << 20

  init(_ item: BatchItem, chunks: AsyncChannel<Data>, table: ItemTable, memory: MemoryBudget) {
    self.item = item
    self.table = table
    self.chunks = chunks.makeAsyncIterator()
    reservation = Hold(budget: memory)
  }

  var isComplete: Bool { table.isComplete(item) }
  var bufferedByteCount: Int { 0 }

  func next() async throws -> (bytes: Data, isLast: Bool) {
    if let bytes = await chunks.next() {
      if bytes.count > Self.freeChunkByteCount { try reservation.grow(to: bytes.count) }
      return (bytes, false)
    }
    try item.checkCancellation()
    guard isComplete else {
      throw PipelineError(.truncatedImage, "the stream ended before the item's end", field: "image")
    }
    return (Data(), true)
  }
}
