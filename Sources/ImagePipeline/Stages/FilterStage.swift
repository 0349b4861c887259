internal import ImageCodecs
internal import Tracing

/// The filters of the configuration, pass after pass, on rows of the result's size.
///
/// No pass holds more than the rows that its windows span. Without filters, strips pass as they are, and there is no
/// span.
struct FilterStage: ~Copyable {
  private let passes: [any RowFilter]
  private let format: PixelFormat
  private let plan: Plan
  var meter: StageMeter

  init(plan: Plan, budget: PictureBudget, tracing: TraceTarget) throws(PipelineError) {
    var meter = StageMeter("filter", tracing: tracing)
    var passes: [any RowFilter] = []
    if !plan.filters.isEmpty {
      let began = meter.begin()
      for pass in plan.filters.passes {
        do { passes.append(try Self.rowFilter(pass, plan: plan, budget: budget)) } catch { throw PipelineError(error) }
      }
      meter.end(began)
    }
    self.passes = passes
    self.meter = meter
    self.plan = plan
    format = plan.filterFormat
  }

  private static func rowFilter(
    _ pass: FilterChain.Pass, plan: Plan, budget: PictureBudget
  ) throws(CodecError) -> any RowFilter {
    let (size, format) = (plan.storedOutputSize, plan.filterFormat)
    switch pass {
    case .levels(let table, _):
      return try LevelFilter(table: table, width: size.width, format: format, budget: budget)
    case .color(let program): return try ColorFilter(program, size: size, format: format, budget: budget)
    case .area(let operation, _):
      return try AreaFilter(
        operation, size: size, orientation: plan.orientation, format: format, budget: budget)
    }
  }

  /// What this stage charges for a result of `size` as stored.
  static func estimatedByteCount(_ chain: FilterChain, size: PixelSize, format: PixelFormat) -> Int {
    chain.passes.reduce(0) { sum, pass in
      let rows = size.width * format.pixelByteCount * RowFilterBuffer.rowCount
      return switch pass {
      case .levels, .color: sum + rows
      case .area(let operation, _): sum + rows + AreaFilter.heldByteCount(operation, size: size, format: format)
      }
    }
  }

  /// Filters the strip's rows and hands on what they complete.
  mutating func push(
    _ strip: borrowing Strip, next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    guard !passes.isEmpty else { return try next(strip) }
    try pass(strip.plane(0), through: 0, next: next)
  }

  /// A pass that has taken the picture's last row gives all that is left: there is nothing to flush.
  private mutating func pass(
    _ rows: Strip.Rows, through index: Int, next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    guard index < passes.count else { return try next(Strip(format: format, rows: rows)) }
    var waiting = rows
    while true {
      let began = meter.begin()
      let taken = passes[index].push(waiting)
      let ready = passes[index].read()
      meter.end(began)
      waiting.dropFirst(taken)
      if ready.rowCount > 0 { try pass(ready, through: index + 1, next: next) } else if taken == 0 { return }
    }
  }

  mutating func finish() {
    let (size, chain) = (plan.storedOutputSize, plan.filters)
    meter.finish { attributes in
      attributes["imageworker.width"] = .int64(Int64(size.width))
      attributes["imageworker.height"] = .int64(Int64(size.height))
      attributes["imageworker.filters"] = .string(chain.description)
      attributes["imageworker.halo_rows"] = .int64(Int64(chain.haloRowCount))
    }
  }
}
