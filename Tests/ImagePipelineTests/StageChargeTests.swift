import ImageCodecs
import TestSupport
import Testing

@testable import ImagePipeline

/// Lists of stages that were made for these tests.
@Suite("Listed stages")
struct StageChargeTests {
  /// A stage that charges a thousand bytes and takes ten milliseconds for a strip.
  private struct SlowStage: Stage {
    static var span: StageSpan { .resize }
    func estimatedByteCount(_ layout: inout PixelLayout) -> Int { 1000 }
    func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool { true }
    func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
      let start = ContinuousClock.now
      while start.duration(to: .now) < .milliseconds(10) {}
      try next(strip)
    }
  }

  private static let layout = PixelLayout(format: .rgb8, planes: [])

  @Test("charge nothing and are bypassed where they do not apply", arguments: [true, false])
  func charge(applies: Bool) throws {
    var stages = Listed(SlowStage(), applies: applies)
    var layout = Self.layout
    #expect(stages.estimatedByteCount(&layout) == (applies ? 1000 : 0))
    let clock = try push(through: &stages)
    #expect((clock.timings.resize >= .milliseconds(10)) == applies)
  }

  @Test("count their time for their own span, and that of the next stage for its span")
  func time() throws {
    var stages = Listed(SlowStage()).then(FilterTimeStage())
    let start = ContinuousClock.now
    let clock = try push(through: &stages)
    let elapsed = start.duration(to: .now)
    #expect(clock.timings.resize >= .milliseconds(10) && clock.timings.filter >= .milliseconds(30))
    #expect(clock.timings.resize + clock.timings.filter <= elapsed && clock.timings.encode == .zero)
  }

  /// A stage that takes thirty milliseconds for a strip.
  private struct FilterTimeStage: Stage {
    static var span: StageSpan { .filter }
    func estimatedByteCount(_ layout: inout PixelLayout) -> Int { 0 }
    func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool { true }
    func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
      let start = ContinuousClock.now
      while start.duration(to: .now) < .milliseconds(30) {}
      try next(strip)
    }
  }

  /// Starts the stages, pushes a strip through them and returns their clock.
  private func push(through stages: inout some Stage) throws -> StageClock {
    let clock = StageClock(tracing: TraceTarget())
    let context = StageContext(
      budget: ImageBudget(limit: 1 << 20), allowance: WorkAllowance(Cancellation(), limit: nil), clock: clock,
      flow: ByteFlow(), conversions: [:], overlays: [])
    var layout = Self.layout
    _ = try stages.start(&layout, context)
    let row = try rowBuffer([1, 2, 3], rowByteCount: 3)
    var count = 0
    try stages.push(Strip(format: .rgb8, rows: [row.rows(first: 0, count: 1)])) { _ in count += 1 }
    #expect(count == 1)
    return clock
  }
}
