internal import ImageCodecs
internal import Tracing

/// Encodes rows of the result to compressed bytes.
struct EncodeStage: ~Copyable {
  /// The maximum number of bytes that are emitted at once.
  static let bufferByteCount = 64 * 1024
  /// The number of rows of each plane that are encoded at once: the maximum height of a JPEG's MCU.
  private static let rowCount = 16

  /// Where compressed bytes go.
  private enum Destination {
    /// Decided at the first row.
    case undecided
    /// To the caller.
    case caller
    /// To the first trial of the search for a result that fits a size limit or reaches a similarity.
    indirect case search(ByteTarget)
    /// Behind the bytes of the final result that wait to be emitted; `offset` counts those that were emitted.
    case result(CompressedBytes, offset: UInt64)
  }

  /// The parts of a started stage.
  private struct Resources {
    let context: StageContext
    /// Receives the output of the encoders of trials.
    let buffer: PixelBuffer
  }

  private let plan: Plan
  private var resources: Resources?
  /// The encoder, from the start until all of its output was read.
  private var encoder: Encoder?
  private var destination = Destination.undecided
  /// The search for an animation that fits a size limit.
  private var frames: FrameSearch?
  /// The options of the emitted result.
  private(set) var options: EncoderOptions
  /// The size of the result in bytes, as far as it is known.
  private(set) var outputByteCount: UInt64 = 0
  /// The similarity of the result to its uncompressed rows, if it was measured.
  private(set) var similarity: Double?
  /// The formats that were compared, the smallest first; empty if there was no choice.
  private(set) var formatTrials: [FormatTrial] = []
  /// The number of frames of the result; valid once it is finished.
  private(set) var frameCount = 1
  private var isEncoded = false
  private(set) var isPaused = false

  init(_ plan: Plan) {
    self.plan = plan
    options = plan.encoder
  }

  /// Returns an upper bound of the bytes that this stage charges, including its trials for a size limit.
  func estimatedByteCount() throws(PipelineError) -> UInt64 {
    let (limit, encoder) = (plan.byteLimit, plan.encoder)
    let encoding = try withCodecErrors { () throws(CodecError) in
      guard let limit else { return try encoder.estimatedByteCount() }
      return try limit.estimatedByteCount(encoder: encoder)
    }
    return encoding + UInt64(Self.bufferByteCount + enlargementByteCount)
  }

  /// The additional bytes for the encoder's queue when rows are enlarged.
  ///
  /// Luma then runs ahead of chroma by several source rows, so the queue grows beyond three rows of MCUs, and both the
  /// old and the new block are allocated while it grows.
  private var enlargementByteCount: Int {
    guard plan.encoder.pixelFormat == .ycc8, Double(plan.storedOutputSize.height) > 2 * plan.storedWindow.height
    else { return 0 }
    return plan.storedOutputSize.width * 3 * 48 * 3 / 2
  }

  mutating func start(_ context: StageContext) throws(CodecError) {
    let buffer = try PixelBuffer(byteCount: Self.bufferByteCount, budget: context.budget)
    resources = Resources(context: context, buffer: buffer)
    if !(plan.byteLimit?.usesSample(plan.encoder) ?? false) {
      encoder = try Encoder(options: plan.encoder, budget: context.budget)
    }
    if plan.encoder.hasFrames, let limit = plan.byteLimit {
      frames = try FrameSearch(limit, encoder: plan.encoder, budget: context.budget)
    }
  }

  private var isFull: Bool { resources?.context.flow.isFull ?? false }
  private var receivedByteCount: UInt64 { resources?.context.flow.receivedByteCount ?? 0 }

  mutating func beginFrame(_ frame: ImageFrame) throws(PipelineError) {
    do throws(CodecError) {
      try encoder?.beginFrame(frame)
      try frames?.store?.encoder.beginFrame(frame)
    } catch { throw PipelineError(error) }
  }

  /// Writes the next rows of the frame: those that the frame before has there.
  mutating func repeatRows(_ count: Int) throws(PipelineError) {
    do { try encoder?.repeatRows(count) } catch { throw PipelineError(error) }
  }

  /// Ends the frame; the bytes that it completes are emitted with the next rows, or at the end.
  mutating func endFrame() throws(PipelineError) {
    guard let allowance = resources?.context.allowance else { return }
    try encoder?.finish(.frame, within: allowance)
    try frames?.store?.encoder.finish(.frame, within: allowance)
  }

  /// Encodes rows and emits the bytes that they complete, a few rows at a time, so that little output accumulates.
  mutating func push(_ strip: borrowing Strip, _ output: (RawSpan) -> Void) throws(PipelineError) {
    if case .undecided = destination { try decideDestination() }
    var waiting = (0..<strip.format.planeCount).map { strip.plane($0) }
    while waiting.contains(where: { $0.rowCount > 0 }) {
      // A few rows of an image can become any number of result rows.
      try resources?.context.allowance.check()
      var portion = waiting.map { $0.prefix(Self.rowCount) }
      if strip.format == .ycc8, options.subsampling == .quarter {
        for index in 1...2 { portion[index] = portion[index].prefix(Self.rowCount / 2) }
      }
      for index in waiting.indices { waiting[index].dropFirst(portion[index].rowCount) }
      try push(portion: Strip(format: strip.format, rows: portion))
      try drain(output)
    }
    if case .search(let target) = destination { endSettledSearch(target) }
    emitResult(output)
  }

  /// Starts the search, unless the file is already known to be large enough for any result.
  private mutating func decideDestination() throws(PipelineError) {
    destination = .caller
    guard frames == nil, let limit = plan.byteLimit, let resources, !limit.isSettled(received: receivedByteCount) else {
      return
    }
    destination = .search(try ByteTarget(limit, encoder: plan.encoder, budget: resources.context.budget))
  }

  /// Ends the search once the file is known to be large enough for any result: the first trial is then the result.
  private mutating func endSettledSearch(_ target: ByteTarget) {
    guard let limit = plan.byteLimit, limit.isSettled(received: receivedByteCount) else { return }
    outputByteCount = target.trial.byteCount
    destination = .result(target.trial, offset: 0)
  }

  private mutating func push(portion: borrowing Strip) throws(PipelineError) {
    do throws(CodecError) {
      try encoder?.write(portion)
      try frames?.store?.encoder.write(portion)
    } catch { throw PipelineError(error) }
    if case .search(let target) = destination { target.image?.append(portion) }
  }

  /// Emits the bytes that are compressed so far: all of them, or until enough output is waiting if the encoder has
  /// finished.
  private mutating func drain(_ output: (RawSpan) -> Void) throws(PipelineError) {
    while true {
      let taken: Encoder.Output?
      do { taken = try encoder?.take(limit: Self.bufferByteCount) } catch { throw PipelineError(error) }
      guard let taken, taken.byteCount > 0 else { return }
      try taken.withBytes { (bytes) throws(PipelineError) in
        switch destination {
        case .search(let target): return try target.trial.append(bytes)
        case .result(let result, _): try result.append(bytes)
        case .undecided, .caller:
          output(bytes)
          isPaused = isEncoded && isFull
        }
        outputByteCount += UInt64(bytes.byteCount)
      }
      if isPaused { return }
    }
  }

  /// Finishes the result and emits the rest, pausing when enough output is waiting.
  mutating func finish(_ end: ImageEnd, _ output: (RawSpan) -> Void) throws(PipelineError) {
    isPaused = false
    if !isEncoded {
      if !end.trailingMetadata.isEmpty {
        do { try encoder?.append(exif: end.trailingMetadata) } catch { throw PipelineError(error) }
      }
      if let allowance = resources?.context.allowance { try encoder?.finish(within: allowance) }
      if let search = frames { try settleFrames(search, end) }
      isEncoded = true
    }
    if case .search = destination {
      // The memory for output that encoders emit only at their end is already charged.
    } else if isFull {
      isPaused = true
      return
    }
    try drain(output)
    if isPaused { return }
    frameCount = encoder?.storedFrameCount ?? frameCount
    encoder = nil
    try settle(end)
    emitResult(output)
    if case .result = destination { isPaused = true }
  }

  /// Chooses the animation that fits the size limit, if there is one.
  private mutating func settleFrames(_ search: FrameSearch, _ end: ImageEnd) throws(PipelineError) {
    guard let resources, let first = encoder.take() else { return }
    let result = try search.settle(
      EncodedFrames(first, options: options), end, resources.buffer, resources.context.allowance)
    frames = nil
    options = result.options
    encoder = result.takeEncoder()
  }

  /// Chooses the still image that fits the size limit, if there is one.
  private mutating func settle(_ end: ImageEnd) throws(PipelineError) {
    guard case .search(var target) = destination, let resources else { return }
    destination = .caller  // or what the search rejects could not be freed
    let result = try target.settle(end, resources.buffer, resources.context.allowance)
    options = result.options
    formatTrials = target.formatTrials
    similarity = result.similarity
    outputByteCount = result.bytes.byteCount
    destination = .result(result.bytes, offset: 0)
  }

  /// Emits buffered bytes of the result until enough output is waiting.
  private mutating func emitResult(_ output: (RawSpan) -> Void) {
    while case .result(let bytes, let offset) = destination, !isFull {
      destination =
        offset == bytes.byteCount
        ? .caller : .result(bytes, offset: offset + UInt64(bytes.withChunk(at: offset, output)))
    }
  }

  func describe(_ attributes: inout StageClock.Attributes) {
    attributes["imageworker.format"] = .string(options.format.rawValue)
    attributes["imageworker.width"] = .int64(Int64(options.width))
    attributes["imageworker.height"] = .int64(Int64(options.height))
    attributes["imageworker.pixels"] = .int64(Int64(options.width * options.height))
    if frameCount > 1 { attributes["imageworker.frames"] = .int64(Int64(frameCount)) }
    attributes["imageworker.quality"] = .int64(Int64(options.quality))
    attributes["imageworker.bytes"] = .int64(Int64(outputByteCount))
    attributes["imageworker.peak_memory_bytes"] = .int64(Int64(resources?.context.budget.peak ?? 0))
  }
}
