internal import FoundationEssentials
internal import ImagePipeline

/// One part of a rendition's result, as sent to a sink.
///
/// A rendition consists of a header, chunks and a report, in this order. A failure replaces the parts that are missing.
struct ResultPart: Sendable {
  enum Content: Sendable {
    case header(ImageInfo)
    case chunk(Data)
    case report(ResultReport)
    /// The error that ended one of several renditions, before or after its header.
    case failure(any Error)
  }

  let content: Content
  let rendition: Rendition
  /// Whether another part follows immediately.
  let isMoreReady: Bool

  init(_ content: Content, of rendition: Rendition, isMoreReady: Bool = false) {
    self.content = content
    self.rendition = rendition
    self.isMoreReady = isMoreReady
  }

  /// Whether this is the last part of the rendition.
  var isLast: Bool {
    switch content {
    case .report, .failure: true
    case .header, .chunk: false
    }
  }
}

/// The outcome of processing an image, as reported to one caller.
struct ResultReport: Sendable {
  var processing: ProcessingReport
  /// Whether the result came from the cache.
  var isCacheHit = false
  /// The id of the call's trace; `nil` if the call is not traced.
  var traceID: String?
}

/// Receives the parts of one image's results.
///
/// A sink belongs to one job. It may buffer parts and forwards them in order.
protocol ResultSink: AnyObject {
  /// Accepts a part.
  ///
  /// Waits while there is no room for it.
  func send(_ part: ResultPart) async throws
}
