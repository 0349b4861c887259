internal import ImageCodecs

/// A result with a gain map, whose compressed bytes are spooled until the sizes of both are known.
///
/// It is a class so that the closures that receive its bytes can append them.
final class GainMapFile {
  private enum Piece {
    case bytes([UInt8])
    case spooled(SpooledBytes, offset: UInt64)
  }

  /// The index of the rendition.
  let index: Int
  let plan: Plan
  let gainMap: GainMapPlan
  private let image: SpooledBytes
  private let map: SpooledBytes
  private var failure: CodecError?
  /// The report of the image without its map, once that is complete.
  var report: ProcessingReport?
  private var mapReport: ProcessingReport?
  private var obstacle: GainMapObstacle?
  private var pieces: [Piece] = []
  private var byteCount: UInt64 = 0
  private var mapByteCount: UInt64 = 0

  init(
    index: Int, plan: Plan, _ gainMap: GainMapPlan, limits: ImageLimits, budget: ImageBudget
  ) throws(PipelineError) {
    (self.index, self.plan, self.gainMap) = (index, plan, gainMap)
    do {
      image = try SpooledBytes(spill: limits.spill, budget: budget)
      map = try SpooledBytes(spill: limits.spill, budget: budget)
    } catch { throw PipelineError(error) }
  }

  /// Appends compressed bytes of the image; `check` throws an error.
  func append(_ bytes: RawSpan) { append(bytes, to: image) }

  /// Appends compressed bytes of the map; `check` throws an error.
  func append(map bytes: RawSpan) { append(bytes, to: map) }

  private func append(_ bytes: RawSpan, to spool: SpooledBytes) {
    do throws(CodecError) {
      if failure == nil { try spool.append(bytes) }
    } catch { failure = error }
  }

  /// Throws the error of the last bytes that were appended.
  func check() throws(PipelineError) {
    if let failure { throw PipelineError(failure) }
  }

  // MARK: Assembly

  /// Puts the image and the map together; the image alone if there is no usable map.
  func finish(_ work: borrowing GainMapWork, at place: Int, budget: ImageBudget) throws(PipelineError) {
    try check()
    try withCodecErrors { () throws(CodecError) in
      try image.end()
      try map.end()
    }
    (pieces, byteCount) = ([.spooled(image, offset: 0)], image.byteCount)
    obstacle = work.obstacle
    guard work.reports.indices.contains(place) else { return }
    guard (try? budget.charge(GainMapRoute.headByteCount)) != nil else { return obstacle = .memory }
    let (container, mapHead) = (try Self.head(of: image), try Self.head(of: map))
    let mapBeginning = mapHead.head + work.metadata.segments
    let mapTotal = map.byteCount - UInt64(mapHead.head.count) + UInt64(mapBeginning.count)
    guard
      let beginning = container.beginning(
        marker: gainMap.marker, metadata: work.metadata, byteCount: Int(image.byteCount), mapByteCount: Int(mapTotal))
    else { return obstacle = .metadata }
    let total = image.byteCount - UInt64(container.head.count) + UInt64(beginning.count) + mapTotal
    guard total <= gainMap.maxByteCount ?? .max else { return obstacle = .maxBytes }
    pieces = [
      .bytes(beginning), .spooled(image, offset: UInt64(container.head.count)), .bytes(mapBeginning),
      .spooled(map, offset: UInt64(mapHead.head.count)),
    ]
    (byteCount, mapByteCount, mapReport) = (total, mapTotal, work.reports[place])
  }

  private static func head(of spool: SpooledBytes) throws(PipelineError) -> GainMapContainer {
    var container = GainMapContainer()
    var (offset, isComplete) = (UInt64(0), false)
    while !isComplete {
      let count = try withCodecErrors { () throws(CodecError) in
        try spool.withBytes(at: offset) { isComplete = container.push($0) }
      }
      guard count > 0 else { throw PipelineError(.internalDefect, "a result is no JPEG") }
      offset += UInt64(count)
    }
    return container
  }

  /// Emits the next bytes of the result.
  /// - Returns: Their number; 0 at the end.
  func emit(_ output: (RawSpan) -> Void) throws(PipelineError) -> Int {
    while let piece = pieces.first {
      switch piece {
      case .bytes(let bytes):
        pieces.removeFirst()
        bytes.withRawSpan(output)
        return bytes.count
      case .spooled(let spool, let offset):
        let count = try withCodecErrors { () throws(CodecError) in try spool.withBytes(at: offset, output) }
        guard count == 0 else {
          pieces[0] = .spooled(spool, offset: offset + UInt64(count))
          return count
        }
        pieces.removeFirst()
      }
    }
    return 0
  }

  /// The report of the result.
  /// - `position`: the number of bytes of the file that were read.
  func finalReport(position: UInt64, budget: ImageBudget) throws(PipelineError) -> ProcessingReport {
    guard var report else { throw .unfinishedHeader }
    report.inputByteCount = max(report.inputByteCount, position)
    (report.outputByteCount, report.gainMapByteCount) = (byteCount, mapByteCount)
    report.peakMemoryByteCount = UInt64(budget.peak)
    if let obstacle { report.warnings.append(.removedGainMap(because: obstacle)) }
    if let ofMap = mapReport?.timings {
      report.timings.decode += ofMap.decode
      report.timings.resize += ofMap.resize
      report.timings.filter += ofMap.filter
      report.timings.encode += ofMap.encode
    }
    return report
  }
}
