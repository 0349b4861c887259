internal import ImageCodecs

/// One step of a rendition's way from decoded rows to those that are encoded, strip by strip.
///
/// A stage is made from a plan, which costs nothing, and is then asked what it would charge, or started. `Pipeline.stages`
/// lists the stages in order; everything else follows from that list.
protocol Stage: ~Copyable {
  /// As documents and errors name it.
  static var name: String { get }
  /// The span and the timing that its work counts in.
  static var span: StageSpan { get }
  /// Whether the span ends when this stage is finished.
  static var endsSpan: Bool { get }

  /// An upper bound of the bytes that it charges; 0 where it would not be started.
  /// - `layout`: of the strips that come in; becomes that of the strips that go out.
  func estimatedByteCount(_ layout: inout PixelLayout) -> Int

  /// Allocates what the stage needs.
  /// - `layout`: as in `estimatedByteCount`.
  /// - Returns: whether it does anything; else strips pass it by, and it is neither pushed to nor finished.
  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(PipelineError) -> Bool

  /// Hands on what comes before the first strip.
  ///
  /// It may pause, and is then called again.
  mutating func begin(next: NextStage) throws(PipelineError)

  /// Takes the next strip and hands on those that it completes.
  ///
  /// The first stage of a list may pause, and is then given the same strip again.
  mutating func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError)

  /// Hands on what is left after the last strip.
  ///
  /// It may pause, and is then called again.
  mutating func finish(next: NextStage) throws(PipelineError)

  /// Whether its last call stopped between two strips because enough output waits.
  var isPaused: Bool { get }

  /// Whether it takes nothing of any strip that may still come.
  var isDone: Bool { get }

  /// Adds what its span says of it.
  func describe(_ attributes: inout StageMeter.Attributes)
}

/// Where a stage hands on its strips, which are lent for the call.
typealias NextStage = (borrowing Strip) throws(PipelineError) -> Void

extension Stage where Self: ~Copyable {
  static var span: StageSpan { .encode }
  static var endsSpan: Bool { false }
  var isDone: Bool { false }
  var isPaused: Bool { false }
  mutating func begin(next: NextStage) throws(PipelineError) {}
  mutating func finish(next: NextStage) throws(PipelineError) {}
  func describe(_ attributes: inout StageMeter.Attributes) {}
}

/// What a rendition's stages share.
struct StageContext {
  let budget: ImageBudget
  let allowance: WorkAllowance
  let clock: StageClock
  /// Of all the image's output.
  let gauge: OutputGauge
  /// Of the image's colours to sRGB, by the format of what is converted; empty when there is nothing to convert.
  let conversions: [PixelFormat: ColorConversion]

  /// Allocates, with errors as the pipeline has them.
  func allocate<Result: ~Copyable>(
    _ body: (ImageBudget) throws(CodecError) -> Result
  ) throws(PipelineError) -> Result {
    do { return try body(budget) } catch { throw PipelineError(error) }
  }
}
