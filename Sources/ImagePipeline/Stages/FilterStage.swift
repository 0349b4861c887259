internal import ImageCodecs
internal import ImageKernels
internal import Tracing

/// Applies the filters of the configuration, pass after pass, to rows of the result's size.
///
/// Each pass buffers only the rows that its windows span.
struct FilterStage: Stage {
  private let plan: Plan
  private var passes: [any RowFilter] = []
  private var format = PixelFormat.rgb8

  static var span: StageSpan { .filter }
  static var endsSpan: Bool { true }

  init(_ plan: Plan) { self.plan = plan }

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    let (size, format) = (plan.storedOutputSize, layout.format)
    return plan.filters.passes.reduce(0) { sum, pass in
      let rows = LevelFilter.outputByteCount(width: size.width, format: format)
      return switch pass {
      case .levels, .color: sum + rows
      case .area(let operation, _):
        sum + rows
          + AreaFilter.windowByteCount(operation, width: size.width, height: size.height, format: format)
      }
    }
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool {
    format = layout.format
    for pass in plan.filters.passes {
      passes.append(
        try pass.rowFilter(plan.storedOutputSize, plan.orientation, format: format, budget: context.budget))
    }
    return true
  }

  func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
    try pass(strip.plane(0), through: 0, next: next)
  }

  /// Passes rows through the passes from `index` on.
  ///
  /// A pass emits all remaining rows once it has received the last row of the image, so nothing needs to be flushed.
  private func pass(_ rows: Strip.Rows, through index: Int, next: NextStage) throws(PipelineError) {
    guard index < passes.count else { return try next(Strip(format: format, rows: rows)) }
    var waiting = rows
    while true {
      let taken = passes[index].push(waiting)
      let ready = passes[index].read()
      waiting.dropFirst(taken)
      if !ready.isEmpty { try pass(ready, through: index + 1, next: next) } else if taken == 0 { return }
    }
  }

  func endFrame(next: NextStage) throws(PipelineError) {
    for pass in passes { pass.reset() }
  }

  func describe(_ attributes: inout StageClock.Attributes) {
    attributes["imageworker.width"] = .int64(Int64(plan.storedOutputSize.width))
    attributes["imageworker.height"] = .int64(Int64(plan.storedOutputSize.height))
    attributes["imageworker.filters"] = .string(plan.filters.description)
    attributes["imageworker.halo_rows"] = .int64(Int64(plan.filters.haloRowCount))
  }
}
