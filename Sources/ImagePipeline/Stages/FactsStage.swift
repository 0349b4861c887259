internal import ImageCodecs
internal import ImageKernels

/// Gathers the facts of the rows that pass: means of cells, and what the pixels of a row are like.
///
/// The rows are those of the result, in its colors, before filters. Where alpha is removed before that, the facts are
/// gathered before the colors are converted. Only the first frame of an animation counts.
struct FactsStage: Stage {
  private let orientation: Orientation
  private var source: CellSource?
  private var collector: FactsCollector?

  init(_ plan: Plan) { orientation = plan.orientation }

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    CellSource.estimatedByteCount(layout, orientation: orientation)
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool {
    source = try CellSource(layout, orientation: orientation, budget: context.budget)
    collector = context.facts
    return source != nil
  }

  func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
    if collector?.facts == nil { source?.add(strip) }
    try next(strip)
  }

  func endFrame(next: NextStage) throws(PipelineError) {
    guard let collector, collector.facts == nil, let source, source.isComplete else { return }
    collector.facts = ImageFacts(Thumbnail(source.grids, orientation: orientation), source.traits)
  }
}

/// The place among the stages at which facts are gathered.
enum FactsPlace: Sendable, Hashable {
  /// Before colors are converted, as the result has no alpha.
  case beforeColors
  /// Before filters.
  case beforeFilters

  /// - Returns: `nil` if no facts are requested.
  init?(_ configuration: ProcessingConfiguration, header: ImageHeader, filterFormat: PixelFormat) {
    guard configuration.facts ?? false else { return nil }
    self = header.hasAlpha && !filterFormat.hasAlpha ? .beforeColors : .beforeFilters
  }
}
