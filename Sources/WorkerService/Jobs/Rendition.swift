internal import ImagePipeline

/// One of the results that are asked for of an image.
struct Rendition: Sendable {
  /// Its place among the request's renditions; `nil` for the one result of a request that names none.
  let index: Int?
  /// Empty where `index` is `nil`.
  let id: String
  let configuration: ProcessingConfiguration
  /// Whether a preview of it comes before it.
  var isPreviewed = false
  /// Whether it is the preview of a result, not the result itself.
  private(set) var isPreview = false

  /// What comes before it, where anything does.
  var preview: Rendition? {
    guard isPreviewed else { return nil }
    var preview = self
    (preview.isPreviewed, preview.isPreview) = (false, true)
    return preview
  }

  init(index: Int?, id: String, configuration: ProcessingConfiguration, isPreviewed: Bool = false) {
    self.index = index
    self.id = id
    self.configuration = configuration
    self.isPreviewed = isPreviewed
  }

  /// The maximum number of renditions of one image.
  static let maxCount = 16
  private static let maxIDByteCount = 64

  /// An error of this rendition as whoever asked for it is told.
  func error(_ error: any Error) -> any Error {
    index.map { RenditionError(index: $0, error: error) } ?? error
  }
}

/// An error that is about one rendition of a request.
struct RenditionError: Error {
  /// The rendition's place in the request.
  let index: Int
  let error: any Error
}

extension Rendition {
  /// - `others`: the ids that the request has used before; grows by this one.
  static func check(id: String, beside others: inout Set<String>) throws(PipelineError) {
    guard (1...maxIDByteCount).contains(id.utf8.count) else {
      throw PipelineError(
        .invalidField, "rendition_id has \(id.utf8.count) bytes; it must have between 1 and \(maxIDByteCount)",
        field: "rendition_id")
    }
    guard others.insert(id).inserted else {
      throw PipelineError(
        .invalidField, "rendition_id \"\(id)\" is used twice in this request; each rendition needs its own",
        field: "rendition_id")
    }
  }
}
