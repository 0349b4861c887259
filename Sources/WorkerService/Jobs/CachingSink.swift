internal import ImagePipeline
internal import ResultCache

/// Collects results for the cache on their way.
final class CachingSink: ResultSink {
  /// What is done with one rendition's result.
  struct Entry {
    let collector: ResultCollector
    /// What to keep the result as when it is complete; `nil` where that is not known yet.
    let key: CacheKey?
  }

  private let next: any ResultSink
  /// By rendition id; results of others pass.
  var entries: [String: Entry] = [:]

  init(_ next: any ResultSink) { self.next = next }

  func send(_ part: ResultPart) async throws {
    guard !part.rendition.isPreview, let entry = entries[part.rendition.id] else { return try await next.send(part) }
    switch part.content {
    case .chunk(let bytes): entry.collector.append([UInt8](bytes))
    case .report(let report):
      if let metadata = report.processing.cacheMetadata { entry.collector.seal(metadata: metadata) }
      if let key = entry.key { entry.collector.keep(as: key) }
    case .header, .failure: break
    }
    // Those who wait for the result see whether its caller takes it.
    entry.collector.beginSending()
    defer { entry.collector.endSending() }
    try await next.send(part)
  }
}
