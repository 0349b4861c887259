internal import ImageCodecs
internal import ImageKernels

/// One step in the processing of a rendition, from decoded rows to the rows that are encoded, strip by strip.
///
/// A still image is an animation of one frame. Its frames pass through the stage one after another, in the memory that
/// one of them needs.
///
/// Creating a stage from a plan allocates nothing. It can then be asked how much memory it would charge, or be started.
/// `Pipeline.stages` lists the stages in order.
protocol Stage {
  /// The span and the timing in which its work is counted.
  static var span: StageSpan { get }
  /// Whether the span ends when this stage is finished.
  static var endsSpan: Bool { get }

  /// Returns an upper bound of the bytes that the stage charges; 0 if it would not be started.
  /// - `layout`: The layout of the incoming strips; replaced by that of the outgoing strips.
  func estimatedByteCount(_ layout: inout PixelLayout) -> Int

  /// Allocates the memory that the stage needs.
  /// - `layout`: As in `estimatedByteCount`.
  /// - Returns: Whether the stage does anything; otherwise strips bypass it, and no other method is called.
  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool

  /// Emits the strips that precede the first one of a frame.
  ///
  /// After a pause, it is called again.
  /// - `frame`: The frame; a stage that leaves out rows at its top and bottom adds their numbers.
  mutating func beginFrame(_ frame: inout ImageFrame, next: NextStage) throws(PipelineError)

  /// Processes the next strip and emits the strips that it completes.
  ///
  /// The first stage of a list may pause; it is then called again with the same strip.
  mutating func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError)

  /// Emits the remaining strips after the last one of a frame, and prepares for the next frame.
  ///
  /// After a pause, it is called again.
  mutating func endFrame(next: NextStage) throws(PipelineError)

  /// Whether the last call paused between two strips because enough output is waiting.
  ///
  /// Reading it changes nothing, but a list that is only read may be copied as a whole.
  var isPaused: Bool { mutating get }

  /// Whether the stage needs no further strips of this frame.
  var isDone: Bool { mutating get }

  /// Ends the span of the stage after the last frame; implemented by lists of stages.
  func finishSpan()

  /// Adds the attributes of the stage to those of its span.
  func describe(_ attributes: inout StageClock.Attributes)
}

/// Receives the strips that a stage emits; they are valid only during the call.
typealias NextStage = (borrowing Strip) throws(PipelineError) -> Void

extension Stage {
  static var span: StageSpan { .encode }
  static var endsSpan: Bool { false }
  var isDone: Bool { false }
  var isPaused: Bool { false }
  mutating func beginFrame(_ frame: inout ImageFrame, next: NextStage) throws(PipelineError) {}
  mutating func endFrame(next: NextStage) throws(PipelineError) {}
  func finishSpan() {}
  func describe(_ attributes: inout StageClock.Attributes) {}
}

/// The properties of an image that are known once its rows are decoded.
struct ImageEnd {
  /// EXIF data with artist and copyright that was found after the result was started without it; else empty.
  let trailingMetadata: [UInt8]
  /// The size of the file in bytes; for a result that does not depend on it, as far as the decoder has read the file.
  let inputByteCount: UInt64
}

/// The objects that a rendition's stages share.
struct StageContext {
  let budget: ImageBudget
  let allowance: WorkAllowance
  let clock: StageClock
  /// Counts the input, and the output of all renditions.
  let flow: ByteFlow
  /// The conversions of the image's colors; empty if there is nothing to convert.
  let conversions: [ConversionKey: ColorConversion]
  /// Receives the facts of the image.
  var facts = FactsCollector()
  /// The pixels of each overlay of the plan.
  let overlays: [OverlayPixels]
}
