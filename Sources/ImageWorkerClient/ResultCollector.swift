internal import FoundationEssentials
internal import WorkerProtocol

/// One of the results of an image.
struct ResultKey: Sendable, Hashable {
  /// Empty without renditions.
  var renditionID: String
  var isPreview = false
}

/// A part of a response, of either call.
struct ResponsePart: Sendable {
  enum Content: Sendable {
    case part(ResultPart)
    case error(ImageWorkerError)
  }

  var key: ResultKey
  /// `nil` for a part that this client does not know.
  var content: Content?

  init(_ response: Imageworker_V1_ProcessImageResponse) {
    key = ResultKey(renditionID: response.renditionID, isPreview: response.isPreview)
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
    key = ResultKey(renditionID: response.renditionID, isPreview: response.isPreview)
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
  private struct Begun {
    var header = ImageInfo()
    // Not a list, in which each of many small chunks would take more room than its bytes.
    var data = Data()
  }

  enum End {
    case outcomes(Outcomes, preview: ImageResult?)
    /// An error of the whole image.
    case failure(ImageWorkerError)

    /// Whether the worker did nothing for the image.
    var isRefusal: Bool {
      if case .failure(let error) = self { return error.isRefusal || error.isEnd }
      return false
    }
  }

  private let expectedCount: Int
  private var begun: [ResultKey: Begun] = [:]
  private var outcomes: Outcomes = [:]
  private var preview: ImageResult?

  /// - `renditionCount`: 0 for an image without renditions.
  init(renditionCount: Int) { expectedCount = max(1, renditionCount) }

  /// Adds the next part.
  /// - Returns: the end of the image, if the part is its last one.
  mutating func add(_ part: ResponsePart) -> End? {
    let key = part.key
    switch part.content {
    case .part(.header(let info)): begun[key, default: Begun()].header = info
    case .part(.chunk(let bytes)): begun[key, default: Begun()].data.append(bytes)
    case .part(.report(let report)):
      let begun = begun.removeValue(forKey: key) ?? Begun()
      let result = ImageResult(data: begun.data, header: begun.header, report: report)
      if key.isPreview { preview = result } else { outcomes[key.renditionID] = .success(result) }
    case .error(let error):
      if key.renditionID.isEmpty { return .failure(error) }
      outcomes[key.renditionID] = .failure(error)
    case nil: break
    }
    return outcomes.count == expectedCount ? .outcomes(outcomes, preview: preview) : nil
  }
}
