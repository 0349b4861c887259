internal import ImageCodecs
internal import WorkThreads

/// Processes an image as its plan specifies, then the gain map behind it in the file, and returns both as one file.
///
/// The map is an image of its own, with its own decoder, stages and encoder, which begin once those of the image have
/// ended. As the file begins with the sizes of both, compressed bytes are spooled until both are known. A map that
/// cannot be used is left out, with a warning.
package final class GainMapRoute: ImageRoute {
  private enum Step {
    case image, map, emission, done
  }

  /// The maximum number of bytes that the beginnings of the files need.
  static let headByteCount = 2 * GainMapContainer.maxByteCount

  private var step = Step.image
  private var image: (any ImageRoute)?
  private var map: GainMapWork
  private var files: [GainMapFile]
  private var outcomes: [RenditionOutcome?]
  private let budget: ImageBudget
  /// Counts the output that is not spooled.
  private let flow = ByteFlow()
  /// The position in the file of the next byte.
  private var position: UInt64
  /// Whether the image has ended so that its map can follow.
  private var isImageEnded = false
  /// The CPU time that the image has used.
  private var cpuTime: Duration

  init(
    _ reader: consuming ImageReader, plan: ImagePlan, renditionIDs: [String], cancellation: Cancellation,
    tracing: TraceTarget
  ) throws(PipelineError) {
    (position, budget) = (reader.position, reader.budget)
    cpuTime = reader.allowance?.used ?? .zero
    files = []
    outcomes = plan.renditions.map { plan in if case .failure(let error) = plan { .failure(error) } else { nil } }
    for (index, rendition) in plan.renditions.enumerated() {
      guard case .success(let plan) = rendition, let gainMap = plan.gainMap else { continue }
      files.append(try GainMapFile(index: index, plan: plan, gainMap, limits: reader.limits, budget: reader.budget))
    }
    map = GainMapWork(
      files, search: reader.gainMaps, limits: reader.limits, budget: reader.budget, cancellation: cancellation,
      tracing: tracing)
    var imagePlan = plan
    for file in files { imagePlan.renditions[file.index] = imagePlan.renditions[file.index].map(\.withoutGainMap) }
    let began = ThreadClock.now
    image = try reader.takeRoute(
      imagePlan, renditionIDs: renditionIDs, cancellation: cancellation, tracing: tracing)
    cpuTime += ThreadClock.now - began
  }

  package func advance(
    _ bytes: RawSpan, isLast: Bool, consumed: inout Int, output: (_ rendition: Int, RawSpan) -> Void
  ) throws(PipelineError) -> PipelineProgress {
    flow.waitingByteCount = 0
    var taken = 0
    while true {
      let rest = bytes.extracting(droppingFirst: taken)
      let start = position
      let progress: PipelineProgress?
      switch step {
      case .image: progress = try advanceImage(rest, isLast: isLast, output)
      case .map: progress = try advanceMap(rest, isLast: isLast)
      case .emission: progress = try emit(output)
      case .done: progress = .done
      }
      taken += Int(position - start)
      guard let progress else { continue }
      consumed += progress == .paused ? taken : bytes.byteCount
      return progress
    }
  }

  package func outcome(of index: Int) -> RenditionOutcome? { outcomes[index] }

  package var hasWholeImage: Bool { false }

  // MARK: Image

  /// - Returns: `nil` if the next step can continue at once.
  private func advanceImage(
    _ bytes: RawSpan, isLast: Bool, _ output: (Int, RawSpan) -> Void
  ) throws(PipelineError) -> PipelineProgress? {
    guard let route = image.take() else { throw .unfinishedHeader }
    let distance = map.imageDistance(in: bytes, from: position) ?? .max
    let portion = bytes.extracting(first: min(bytes.byteCount, distance))
    let isEnd = isImageEnded || (isLast && portion.byteCount == bytes.byteCount)
    var count = 0
    let began = ThreadClock.now
    let progress = try route.advance(portion, isLast: isEnd, consumed: &count) { index, compressed in
      if let file = files.first(where: { $0.index == index }) {
        file.append(compressed)
      } else {
        flow.waitingByteCount += compressed.byteCount
        output(index, compressed)
      }
    }
    cpuTime += ThreadClock.now - began
    position += UInt64(count)
    try noteOutcomes(of: route)
    switch progress {
    case .paused:
      image = route
      return flow.isFull ? .paused : nil
    case .done:
      step = files.isEmpty ? .done : .map
      return nil
    case .needsInput:
      if isImageEnded { throw PipelineError(.internalDefect, "an image goes on behind its last byte") }
      if count == distance { isImageEnded = map.isImageEnd(position) || route.hasWholeImage }
      // An image that goes on where its map would begin has none there.
      if count == distance && !isImageEnded { map.skip(to: position + 1) }
      image = route
      return count == bytes.byteCount && !isImageEnded ? .needsInput : nil
    }
  }

  /// Notes the renditions that have ended; those that have failed need no map.
  private func noteOutcomes(of route: any ImageRoute) throws(PipelineError) {
    for index in outcomes.indices where outcomes[index] == nil {
      let outcome = route.outcome(of: index)
      guard let position = files.firstIndex(where: { $0.index == index }) else {
        outcomes[index] = outcome
        continue
      }
      switch outcome {
      case nil: try files[position].check()
      case .success(let report): files[position].report = report
      case .failure:
        outcomes[index] = outcome
        files.remove(at: position)
      }
    }
  }

  // MARK: Map and result

  private func advanceMap(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> PipelineProgress? {
    let (isEnded, count) = try map.advance(bytes, at: position, isLast: isLast, files, after: cpuTime)
    position += UInt64(count)
    guard isEnded else { return .needsInput }
    for (place, file) in files.enumerated() { try file.finish(map, at: place, budget: budget) }
    step = .emission
    return nil
  }

  private func emit(_ output: (Int, RawSpan) -> Void) throws(PipelineError) -> PipelineProgress? {
    while let file = files.first {
      while !flow.isFull {
        let count = try file.emit { bytes in
          flow.waitingByteCount += bytes.byteCount
          output(file.index, bytes)
        }
        if count == 0 { break }
      }
      if flow.isFull { return .paused }
      outcomes[file.index] = .success(try file.finalReport(position: position, budget: budget))
      files.removeFirst()
    }
    step = .done
    return .done
  }
}

extension Plan {
  fileprivate var withoutGainMap: Plan {
    var plan = self
    plan.gainMap = nil
    return plan
  }
}
