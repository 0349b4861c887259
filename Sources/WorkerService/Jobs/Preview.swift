internal import FoundationEssentials
internal import ImagePipeline

/// The preview of one picture on its way, and what of the picture's result waits until it has ended.
///
/// It is decoded apart from the result, from the same bytes, so that the result is what it would be without. It belongs to
/// one task.
struct Preview: ~Copyable {
  typealias Part = PictureProcessor.Part

  /// Of no use where there is no preview.
  let rendition: Rendition?
  // Until the preview has ended.
  private var picture: Picture?
  private var plan: PicturePlan?
  private(set) var isStarted = false
  private var isHeaderTaken = false
  // What the picture has not taken of the bytes that are here.
  private var bytes = Data()
  private var isLast = false
  private var held: [Part] = []
  private var heldByteCount = 0
  private var hold: Hold

  /// What a part takes beside its bytes, at most.
  private static let partByteCount = 256

  /// - `rendition`: that of the preview; `nil` for none.
  init(of rendition: Rendition?, environment: WorkerEnvironment, cancellation: Cancellation) {
    self.rendition = rendition
    hold = Hold(budget: environment.memory)
    guard let rendition else { return }
    picture = Picture(
      renditions: [rendition], limits: environment.limits, memory: environment.memory, cancellation: cancellation,
      tracing: TraceTarget(tracer: environment.tracer, isPreview: true))
  }

  /// Whether more of it may come.
  var isWorking: Bool { picture != nil }

  /// The bytes that it needs in memory, when that is known and nothing was begun.
  var plannedByteCount: Int? {
    guard picture != nil, !isStarted, let plan else { return nil }
    return Int(clamping: plan.workingSetByteCount)
  }

  /// The next bytes of the picture, of which those before were worked on.
  mutating func take(_ bytes: Data, isLast: Bool) {
    // Its picture is planned at the same byte, and it is then started, or of no use.
    guard isStarted || plan == nil else { return end() }
    self.bytes = bytes
    self.isLast = isLast
  }

  /// Begins decoding, in memory that was set aside together with the picture's.
  mutating func start() throws(PipelineError) {
    isStarted = true
    try picture?.start(nil)
  }

  /// Works on the bytes that are here: all of them, or until it has to be started.
  mutating func work() throws(PipelineError) {
    guard picture != nil, isStarted || plan == nil else { return }
    repeat {
      let window = bytes.prefix(PictureProcessor.windowByteCount)
      switch try picture!.push(window, isLast: isLast && window.count == bytes.count) {
      case .needsInput: bytes = bytes.dropFirst(window.count)
      case .planned(let plan, let consumedByteCount):
        bytes = bytes.dropFirst(consumedByteCount)
        self.plan = plan
        _ = try plan.renditions[0].get()
        return
      case .finished: bytes = Data()
      }
    } while !bytes.isEmpty
  }

  /// What is ready of it, and what became of it once it has ended.
  mutating func takeParts() -> (parts: [Part], end: Result<ProcessingReport, PipelineError>?) {
    guard isStarted, picture != nil else { return ([], nil) }
    let chunks = picture!.takeOutput(of: 0)
    let end = picture!.takeEnd(of: 0)
    guard !chunks.isEmpty || end != nil, case .success(let plan)? = plan?.renditions[0] else { return ([], end) }
    defer { isHeaderTaken = true }
    return ((isHeaderTaken ? [] : [.header(plan.outputInfo)]) + chunks.map { .chunk($0) }, end)
  }

  /// Keeps a part of the picture's result until the preview has ended.
  /// - Throws: `overloaded`, `limitExceeded` when there is no room for it.
  mutating func hold(_ part: Part) throws(PipelineError) {
    heldByteCount += Self.partByteCount
    if case .chunk(let bytes) = part { heldByteCount += bytes.count }
    try hold.grow(to: heldByteCount)
    held.append(part)
  }

  /// Ends it: no more of it will come, and it holds nothing but what waited for it.
  mutating func end() {
    picture = nil
    bytes = Data()
  }

  /// What waited for its end, in order.
  mutating func takeHeld() -> [Part] {
    defer {
      held = []
      hold.release()
    }
    return held
  }
}
