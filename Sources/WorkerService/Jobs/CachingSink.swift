internal import ImagePipeline
internal import ResultCache

/// Copies results into the cache's collectors and forwards them to the next sink.
final class CachingSink: ResultSink {
  /// The collector of one rendition's result.
  struct Entry {
    let collector: ResultCollector
    /// The key under which to store the complete result; `nil` while it is unknown.
    let key: CacheKey?
  }

  private let next: any ResultSink
  /// Entries by rendition id.
  ///
  /// Results of other renditions are forwarded only.
  var entries: [String: Entry] = [:]

  init(_ next: any ResultSink) { self.next = next }

  func send(_ part: ResultPart) async throws {
    guard let entry = entries[part.rendition.id] else { return try await next.send(part) }
    switch part.content {
    case .chunk(let bytes): entry.collector.append([UInt8](bytes))
    case .report(let report):
      // The same image would be rotated if it arrived in one message.
      let isComplete = !report.processing.warnings.contains { $0.code == .orientationIgnored }
      if isComplete, let metadata = report.processing.cacheMetadata { entry.collector.seal(metadata: metadata) }
      if let key = entry.key { entry.collector.keep(as: key) }
    case .header, .failure: break
    }
    // Jobs that wait for this result can see whether this caller still reads it.
    entry.collector.beginSending()
    defer { entry.collector.endSending() }
    try await next.send(part)
  }
}
