internal import ImageCodecs

/// A list of a rendition's stages that ends with the encoder.
///
/// Each list is a separate type, so that the path of a strip through all stages is compiled as one function, without
/// any lookup for each strip.
protocol StageList: AnyObject {
  /// Returns an upper bound of the bytes that the stages charge to the budget for strips of `layout`.
  func estimatedByteCount(_ layout: PixelLayout) throws(PipelineError) -> UInt64
  /// Allocates the memory that the stages need for strips of `layout`.
  func start(_ layout: PixelLayout, _ context: StageContext) throws(PipelineError)
  /// Begins a frame: emits the output that precedes its first strip.
  ///
  /// After a pause, it must be called again.
  func beginFrame(_ frame: ImageFrame, output: (RawSpan) -> Void) throws(PipelineError)
  /// Processes the next decoded strip and emits the output that it completes.
  ///
  /// After a pause, it must be called again with the same strip.
  func push(_ strip: borrowing Strip, output: (RawSpan) -> Void) throws(PipelineError)
  /// Whether the last call paused because enough output is waiting.
  var isPaused: Bool { get }
  /// Whether the result needs no further strips of this frame.
  var isDone: Bool { get }
  /// Ends a frame: emits the output that follows its last strip.
  ///
  /// After a pause, it must be called again.
  func endFrame(output: (RawSpan) -> Void) throws(PipelineError)
  /// Emits the rest of the result.
  ///
  /// After a pause, it must be called again.
  func finish(_ end: ImageEnd, output: (RawSpan) -> Void) throws(PipelineError)
  /// Ends the span of the encoder; must be called after its time was settled.
  func finishSpan()
  /// The encoded result; valid once the list is finished.
  var result: EncodedResult { get }
}

/// A type that provides a list of stages for every plan.
protocol StageListing: ~Copyable {
  associatedtype Stages: StageList
  /// Returns the stages for `plan`, not yet started.
  static func stages(of plan: Plan) -> Stages
}

/// The start of a list, which forwards decoded strips unchanged.
struct DecodedRows: Stage {
  func estimatedByteCount(_ layout: inout PixelLayout) -> Int { 0 }
  func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(PipelineError) -> Bool { true }
  func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) { try next(strip) }
}

extension Stage where Self: ~Copyable {
  /// Appends a stage to the list.
  /// - `applies`: Whether the plan needs the stage; otherwise it charges nothing and strips bypass it.
  consuming func then<Next: Stage & ~Copyable>(
    _ next: consuming Next, when applies: Bool = true
  ) -> Then<Self, Listed<Next>> {
    Then(first: self, second: Listed(next, applies: applies))
  }

  /// Appends the encoder, which completes the list.
  consuming func then(_ encode: consuming EncodeStage) -> EncodedStages<Self> { EncodedStages(self, encode) }
}

/// A stage in a list: measures its time, and is bypassed if it has nothing to do.
struct Listed<Content: Stage & ~Copyable>: Stage, ~Copyable {
  private var stage: Content
  private let applies: Bool
  private var isActive = false
  private var isFrameEnded = false
  private var clock: StageClock?

  init(_ stage: consuming Content, applies: Bool) {
    self.stage = stage
    self.applies = applies
  }

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    applies ? stage.estimatedByteCount(&layout) : 0
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(PipelineError) -> Bool {
    guard applies else { return false }
    clock = context.clock
    let interrupted = Content.endsSpan ? context.clock.enter(Content.span) : nil
    defer { if Content.endsSpan { context.clock.leave(to: interrupted) } }
    isActive = try stage.start(&layout, context)
    return isActive
  }

  mutating func beginFrame(next: NextStage) throws(PipelineError) {
    isFrameEnded = false
    guard isActive, let clock else { return }
    let interrupted = clock.enter(Content.span)
    defer { clock.leave(to: interrupted) }
    try stage.beginFrame(next: next)
  }

  mutating func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
    guard isActive, let clock else { return try next(strip) }
    let interrupted = clock.enter(Content.span)
    defer { clock.leave(to: interrupted) }
    try stage.push(strip, next: next)
  }

  mutating func endFrame(next: NextStage) throws(PipelineError) {
    guard isActive, !isFrameEnded, let clock else { return }
    let interrupted = clock.enter(Content.span)
    defer { clock.leave(to: interrupted) }
    try stage.endFrame(next: next)
    isFrameEnded = !stage.isPaused
  }

  mutating func finishSpan() {
    guard Content.endsSpan, let clock else { return }
    clock.finish(Content.span) { stage.describe(&$0) }
  }

  var isDone: Bool { isActive && stage.isDone }
  var isPaused: Bool { isActive && stage.isPaused }
}

/// Two stages in sequence: the second receives the strips that the first emits.
struct Then<First: Stage & ~Copyable, Second: Stage & ~Copyable>: Stage, ~Copyable {
  var first: First
  var second: Second

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    first.estimatedByteCount(&layout) + second.estimatedByteCount(&layout)
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(PipelineError) -> Bool {
    let isFirstActive = try first.start(&layout, context)
    let isSecondActive = try second.start(&layout, context)
    return isFirstActive || isSecondActive
  }

  mutating func beginFrame(next: NextStage) throws(PipelineError) {
    try first.beginFrame { (strip) throws(PipelineError) in try second.push(strip, next: next) }
    if !first.isPaused { try second.beginFrame(next: next) }
  }

  mutating func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
    try first.push(strip) { (strip) throws(PipelineError) in try second.push(strip, next: next) }
  }

  mutating func endFrame(next: NextStage) throws(PipelineError) {
    try first.endFrame { (strip) throws(PipelineError) in try second.push(strip, next: next) }
    if !first.isPaused { try second.endFrame(next: next) }
  }

  mutating func finishSpan() {
    first.finishSpan()
    second.finishSpan()
  }

  var isDone: Bool { first.isDone || second.isDone }
  var isPaused: Bool { first.isPaused || second.isPaused }
}

/// A complete list: the stages that transform strips, followed by the encoder.
final class EncodedStages<Rows: Stage & ~Copyable>: StageList {
  private var rows: Rows
  private var encode: EncodeStage
  private var clock: StageClock?
  private var isInFrame = false
  // Whether the spans of all stages before the encoder have ended.
  private var areSpansFinished = false

  init(_ rows: consuming Rows, _ encode: consuming EncodeStage) {
    self.rows = rows
    self.encode = encode
  }

  func estimatedByteCount(_ layout: PixelLayout) throws(PipelineError) -> UInt64 {
    var layout = layout
    return UInt64(rows.estimatedByteCount(&layout)) + (try encode.estimatedByteCount(layout))
  }

  func start(_ layout: PixelLayout, _ context: StageContext) throws(PipelineError) {
    var layout = layout
    _ = try rows.start(&layout, context)
    try encode.start(layout, context)
    clock = context.clock
  }

  func beginFrame(_ frame: ImageFrame, output: (RawSpan) -> Void) throws(PipelineError) {
    if !isInFrame { try encode.beginFrame(frame) }
    isInFrame = true
    try rows.beginFrame { (strip) throws(PipelineError) in try write(strip, output) }
  }

  func push(_ strip: borrowing Strip, output: (RawSpan) -> Void) throws(PipelineError) {
    try rows.push(strip) { (strip) throws(PipelineError) in try write(strip, output) }
  }

  func endFrame(output: (RawSpan) -> Void) throws(PipelineError) {
    try rows.endFrame { (strip) throws(PipelineError) in try write(strip, output) }
    if rows.isPaused { return }
    let interrupted = clock?.enter(.encode)
    defer { clock?.leave(to: interrupted) }
    try encode.endFrame()
    isInFrame = false
  }

  func finish(_ end: ImageEnd, output: (RawSpan) -> Void) throws(PipelineError) {
    if !areSpansFinished { rows.finishSpan() }
    areSpansFinished = true
    let interrupted = clock?.enter(.encode)
    defer { clock?.leave(to: interrupted) }
    try encode.finish(end, output)
  }

  private func write(_ strip: borrowing Strip, _ output: (RawSpan) -> Void) throws(PipelineError) {
    let interrupted = clock?.enter(.encode)
    defer { clock?.leave(to: interrupted) }
    try encode.push(strip, output)
  }

  var isDone: Bool { rows.isDone }
  var isPaused: Bool { rows.isPaused || encode.isPaused }

  func finishSpan() { clock?.finish(.encode) { encode.describe(&$0) } }

  var result: EncodedResult { encode.result }
}
