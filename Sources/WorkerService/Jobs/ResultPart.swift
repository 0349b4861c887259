internal import FoundationEssentials
internal import ImagePipeline

/// One part of a rendition's result on its way to a sink.
///
/// A rendition has a header, chunks and a report, in this order, or a failure instead of what is missing of them.
struct ResultPart: Sendable {
  enum Content: Sendable {
    case header(ImageInfo)
    case chunk(Data)
    case report(ResultReport)
    /// Why one of several renditions has no result, or no more of it.
    case failure(any Error)
  }

  let content: Content
  let rendition: Rendition
  /// Whether another part follows at once.
  let isMoreReady: Bool

  init(_ content: Content, of rendition: Rendition, isMoreReady: Bool = false) {
    self.content = content
    self.rendition = rendition
    self.isMoreReady = isMoreReady
  }

  /// Whether no part of the rendition follows.
  var isLast: Bool {
    switch content {
    case .report, .failure: true
    case .header, .chunk: false
    }
  }
}

/// The outcome of processing an image, as one caller gets it.
struct ResultReport: Sendable {
  var processing: ProcessingReport
  /// Whether the result was in the cache.
  var isCacheHit = false
  /// The trace of the call; `nil` where it is not traced.
  var traceID: String?
}
