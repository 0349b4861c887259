internal import ImagePipeline

/// Forwards an item's parts, and none after the item has ended.
final class ItemSink: ResultSink {
  private let next: any ResultSink
  private let item: BatchItem
  private let table: ItemTable
  private var renditionsLeft: Int

  init(_ next: any ResultSink, item: BatchItem, table: ItemTable) {
    self.next = next
    self.item = item
    self.table = table
    renditionsLeft = item.renditions.count
  }

  func send(_ part: ResultPart) async throws {
    try item.cancellation.check()
    if part.isLast, !part.rendition.isPreview { renditionsLeft -= 1 }
    let isAllowed = renditionsLeft == 0 ? table.claimEnd(of: item) : table.isActive(item)
    guard isAllowed else { throw PipelineError.cancelled }
    try await next.send(part)
  }
}
