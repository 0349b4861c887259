internal import GRPCProtobuf
internal import ImagePipeline
internal import WorkerProtocol

/// One of the results that are asked for of a picture.
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

  /// The most that one picture has.
  static let largestCount = 16
  private static let longestID = 64

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

extension WorkerEnvironment {
  /// What a request asks for.
  /// - Throws: `PipelineError`, or `RenditionError` of one.
  func renditions(of request: some ResultRequest) throws -> [Rendition] {
    guard !request.renditions.isEmpty else {
      let configuration = try configuration(preset: request.preset, overrides: request.configuration)
      return [Rendition(index: nil, id: "", configuration: configuration, isPreviewed: request.preview)]
    }
    guard !request.preview else {
      throw PipelineError(
        .invalidField, "preview must not be set beside renditions, of which a small one serves", field: "preview")
    }
    for (field, isSet) in [("preset", !request.preset.isEmpty), ("configuration", request.hasConfiguration)] where isSet
    {
      throw PipelineError(
        .invalidField, "\(field) must not be set beside renditions, which have their own", field: field)
    }
    guard request.renditions.count <= Rendition.largestCount else {
      throw PipelineError(
        .invalidField,
        "renditions has \(request.renditions.count) entries; at most \(Rendition.largestCount) are taken",
        field: "renditions")
    }
    var ids: Set<String> = []
    return try request.renditions.enumerated().map { index, wire in
      do {
        try Rendition.check(id: wire.renditionID, beside: &ids)
        return Rendition(
          index: index, id: wire.renditionID,
          configuration: try configuration(preset: wire.preset, overrides: wire.configuration))
      } catch { throw RenditionError(index: index, error: error) }
    }
  }
}

extension Rendition {
  /// - `others`: the ids that the request has used before; grows by this one.
  fileprivate static func check(id: String, beside others: inout Set<String>) throws(PipelineError) {
    guard (1...longestID).contains(id.utf8.count) else {
      throw PipelineError(
        .invalidField, "rendition_id has \(id.utf8.count) bytes; it must have between 1 and \(longestID)",
        field: "rendition_id")
    }
    guard others.insert(id).inserted else {
      throw PipelineError(.invalidField, "rendition_id \"\(id)\" is used twice in this request", field: "rendition_id")
    }
  }
}

/// The part of a request that says what to make of a picture.
protocol ResultRequest {
  var preset: String { get }
  var configuration: Imageworker_V1_ProcessingConfiguration { get }
  var hasConfiguration: Bool { get }
  var renditions: [Imageworker_V1_Rendition] { get }
  var preview: Bool { get }
}

extension Imageworker_V1_ProcessImageRequest: ResultRequest {}
extension Imageworker_V1_BatchItemStart: ResultRequest {}
