internal import ImagePipeline

/// One of the requested results of an image.
struct Rendition: Sendable {
  /// The index among the request's renditions; `nil` for the single result of a request without renditions.
  let index: Int?
  /// The rendition's id; empty if `index` is `nil`.
  let id: String
  let configuration: ProcessingConfiguration
  /// The images that the overlays of the configuration name.
  let auxiliary: AuxiliaryImages
  /// Where the result is written; `nil` if it is sent.
  private(set) var memory: SharedMemory?
  /// Whether a preview is sent before this rendition.
  var isPreviewed = false
  /// Whether this is the preview of a result instead of the result itself.
  private(set) var isPreview = false

  /// The preview to send before this rendition; `nil` if there is none.
  var preview: Rendition? {
    guard isPreviewed else { return nil }
    var preview = self
    (preview.isPreviewed, preview.isPreview, preview.memory) = (false, true, nil)
    return preview
  }

  /// - `auxiliary`: the images that overlays can name.
  /// - `memory`: where the result is written.
  init(
    index: Int?, id: String, configuration: ProcessingConfiguration, auxiliary: AuxiliaryImages = AuxiliaryImages(),
    memory: SharedMemory? = nil, isPreviewed: Bool = false
  ) {
    self.index = index
    self.id = id
    self.configuration = configuration
    self.auxiliary = configuration.overlays == nil ? AuxiliaryImages() : auxiliary.used(by: configuration)
    self.memory = memory
    self.isPreviewed = isPreviewed
  }

  /// The maximum number of renditions of one image.
  static let maxCount = 16
  private static let maxIDByteCount = 64

  /// Returns the error in the form in which it is reported to the client.
  func error(_ error: any Error) -> any Error {
    index.map { RenditionError(index: $0, error: error) } ?? error
  }
}

struct RenditionError: Error {
  /// The index of the rendition in the request.
  let index: Int
  let error: any Error
}

extension Rendition {
  /// Checks the length of an id, and that the request uses it only once.
  ///
  /// - `others`: the ids of the request's earlier renditions; `id` is added to them.
  static func check(id: String, beside others: inout Set<String>) throws(PipelineError) {
    guard (1...maxIDByteCount).contains(id.utf8.count) else {
      throw PipelineError(
        .invalidField, "rendition_id has \(id.utf8.count) bytes; it must have between 1 and \(maxIDByteCount)",
        field: "rendition_id", of: .request)
    }
    guard others.insert(id).inserted else {
      throw PipelineError(
        .invalidField, "rendition_id \"\(id)\" is used twice in this request; each rendition needs its own",
        field: "rendition_id", of: .request)
    }
  }
}
