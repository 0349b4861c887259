internal import ImageCodecs

/// A type that provides a list of stages for every plan.
///
/// Each list is a separate type, so that the path of a strip through all stages is compiled as one function, without
/// any lookup for each strip.
protocol StageListing: ~Copyable {
  associatedtype Stages: Stage
  /// Returns the stages for `plan`, not yet started.
  static func stages(of plan: Plan) -> Stages
}

extension Stage {
  /// Appends a stage to the list.
  /// - `applies`: Whether the plan needs the stage; otherwise it charges nothing and strips bypass it.
  consuming func then<Next: Stage>(_ next: consuming Next, when applies: Bool = true) -> Then<Self, Listed<Next>> {
    Then(first: self, second: Listed(next, applies: applies))
  }
}

/// A stage in a list: measures its time, and is bypassed if it has nothing to do.
struct Listed<Content: Stage>: Stage {
  private var stage: Content
  private let applies: Bool
  private var isActive = false
  private var isFrameEnded = false
  private var clock: StageClock?

  init(_ stage: consuming Content, applies: Bool = true) {
    self.stage = stage
    self.applies = applies
  }

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    applies ? stage.estimatedByteCount(&layout) : 0
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool {
    guard applies else { return false }
    clock = context.clock
    let interrupted = Content.endsSpan ? context.clock.enter(Content.span) : nil
    defer { if Content.endsSpan { context.clock.leave(to: interrupted) } }
    isActive = try stage.start(&layout, context)
    return isActive
  }

  mutating func beginFrame(_ frame: inout ImageFrame, next: NextStage) throws(PipelineError) {
    isFrameEnded = false
    guard isActive, let clock else { return }
    let interrupted = clock.enter(Content.span)
    defer { clock.leave(to: interrupted) }
    try stage.beginFrame(&frame, next: next)
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

  func finishSpan() {
    guard Content.endsSpan, let clock else { return }
    clock.finish(Content.span) { stage.describe(&$0) }
  }

  var isDone: Bool { mutating get { isActive && stage.isDone } }
  var isPaused: Bool { mutating get { isActive && stage.isPaused } }
}

/// Two stages in sequence: the second receives the strips that the first emits.
struct Then<First: Stage, Second: Stage>: Stage {
  var first: First
  var second: Second

  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    first.estimatedByteCount(&layout) + second.estimatedByteCount(&layout)
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool {
    let isFirstActive = try first.start(&layout, context)
    let isSecondActive = try second.start(&layout, context)
    return isFirstActive || isSecondActive
  }

  mutating func beginFrame(_ frame: inout ImageFrame, next: NextStage) throws(PipelineError) {
    try first.beginFrame(&frame) { (strip) throws(PipelineError) in try second.push(strip, next: next) }
    if !first.isPaused { try second.beginFrame(&frame, next: next) }
  }

  mutating func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
    try first.push(strip) { (strip) throws(PipelineError) in try second.push(strip, next: next) }
  }

  mutating func endFrame(next: NextStage) throws(PipelineError) {
    try first.endFrame { (strip) throws(PipelineError) in try second.push(strip, next: next) }
    if !first.isPaused { try second.endFrame(next: next) }
  }

  func finishSpan() {
    first.finishSpan()
    second.finishSpan()
  }

  var isDone: Bool { mutating get { first.isDone || second.isDone } }
  var isPaused: Bool { mutating get { first.isPaused || second.isPaused } }
}
