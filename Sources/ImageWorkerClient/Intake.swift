internal import WorkerProtocol

/// Decides which of the parts that arrive belong to the results of one image, so that these have an end.
///
/// A worker can send parts forever. Those that are admitted are a header for each result, bytes up to the maximum, and an
/// end, which comes after all bytes.
struct Intake: Sendable {
  private struct Arrived: Sendable {
    var hasHeader = false
    var byteCount = 0
  }

  private let maxByteCount: Int
  /// The results that have not ended.
  private var open: [ResultKey: Arrived]

  /// - `maxByteCount`: the maximum size of each result.
  init(_ request: ImageRequest, maxByteCount: Int) {
    self.maxByteCount = maxByteCount
    let ids = request.renditions.isEmpty ? [""] : request.renditions.map(\.id)
    open = Dictionary(ids.map { (ResultKey(renditionID: $0), Arrived()) }) { first, _ in first }
    if request.hasPreview { open[ResultKey(renditionID: "", isPreview: true)] = Arrived() }
  }

  /// Whether the part is one of a result that has not ended.
  /// - Throws: the error of a result that is too large or incomplete.
  mutating func admits(_ part: ResponsePart) throws(ImageWorkerError) -> Bool {
    // An error of the whole image.
    if case .error = part.content, part.key.renditionID.isEmpty { return true }
    guard var arrived = open[part.key] else { return false }
    switch part.content {
    case .part(.header):
      if arrived.hasHeader { return false }
      arrived.hasHeader = true
    case .part(.chunk(let bytes)):
      if bytes.isEmpty { return false }
      arrived.byteCount += bytes.count
      if arrived.byteCount > maxByteCount {
        throw .tooLarge(byteCount: arrived.byteCount, limit: maxByteCount)
      }
    case .part(.report(let report)):
      open[part.key] = nil
      if report.outputBytes != arrived.byteCount {
        throw .incomplete(byteCount: arrived.byteCount, of: report.outputBytes)
      }
      return true
    case .error:
      open[part.key] = nil
      return true
    case nil: return false
    }
    open[part.key] = arrived
    return true
  }
}
