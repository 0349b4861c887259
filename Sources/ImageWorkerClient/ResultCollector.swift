internal import FoundationEssentials
internal import WorkerProtocol

/// A part of a response, of either call.
struct ResponsePart: Sendable {
  enum Content: Sendable {
    case part(ResultPart)
    case error(ImageWorkerError)
  }

  var renditionID: String
  var isPreview: Bool
  /// `nil` for a part that this client does not know.
  var content: Content?

  init(_ response: Imageworker_V1_ProcessImageResponse) {
    (renditionID, isPreview) = (response.renditionID, response.isPreview)
    content =
      switch response.part {
      case .header(let info): .part(.header(info))
      case .chunk(let bytes): .part(.chunk(bytes))
      case .report(let report): .part(.report(report))
      case .error(let status): .error(ImageWorkerError(status))
      case nil: nil
      }
  }

  init(_ response: Imageworker_V1_BatchProcessResponse) {
    (renditionID, isPreview) = (response.renditionID, response.isPreview)
    content =
      switch response.part {
      case .header(let info): .part(.header(info))
      case .chunk(let bytes): .part(.chunk(bytes))
      case .report(let report): .part(.report(report))
      case .error(let status): .error(ImageWorkerError(status))
      case nil: nil
      }
  }
}

/// The outcome of each rendition by its id, which is empty without renditions.
typealias Outcomes = [String: Result<ImageResult, ImageWorkerError>]

/// Puts the results of one image together.
struct ResultCollector: Sendable {
  private struct Key: Hashable {
    var renditionID: String
    var isPreview: Bool
  }

  private struct Begun {
    var header = ImageInfo()
    var chunks: [Data] = []
    var byteCount = 0
  }

  /// The end of an image.
  enum End {
    case outcomes(Outcomes, preview: ImageResult?)
    /// An error of the whole image.
    case failure(ImageWorkerError)
  }

  private let expectedCount: Int
  private var begun: [Key: Begun] = [:]
  private var outcomes: Outcomes = [:]
  private var preview: ImageResult?

  /// - `renditionCount`: 0 for an image without renditions.
  init(renditionCount: Int) { expectedCount = max(1, renditionCount) }

  /// Adds the next part.
  /// - Returns: the end of the image, if the part is its last one.
  mutating func add(_ part: ResponsePart) -> End? {
    let key = Key(renditionID: part.renditionID, isPreview: part.isPreview)
    switch part.content {
    case .part(.header(let info)): begun[key, default: Begun()].header = info
    case .part(.chunk(let bytes)):
      begun[key, default: Begun()].chunks.append(bytes)
      begun[key, default: Begun()].byteCount += bytes.count
    case .part(.report(let report)):
      let result = Self.result(begun.removeValue(forKey: key) ?? Begun(), report)
      if part.isPreview { preview = result } else { outcomes[part.renditionID] = .success(result) }
    case .error(let error):
      if part.renditionID.isEmpty { return .failure(error) }
      outcomes[part.renditionID] = .failure(error)
    case nil: break
    }
    return outcomes.count == expectedCount ? .outcomes(outcomes, preview: preview) : nil
  }

  private static func result(_ begun: Begun, _ report: ProcessingReport) -> ImageResult {
    var data = Data(capacity: begun.byteCount)
    for chunk in begun.chunks { data.append(chunk) }
    return ImageResult(data: data, header: begun.header, report: report)
  }
}
