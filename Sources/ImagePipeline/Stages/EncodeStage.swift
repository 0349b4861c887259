internal import ImageCodecs
internal import Tracing

/// Encodes rows of the result to compressed bytes.
struct EncodeStage: ~Copyable {
  /// The maximum number of bytes that are emitted at once.
  static let bufferByteCount = 64 * 1024
  /// The number of rows of each plane that are encoded at once: the maximum height of a JPEG's MCU.
  private static let rowCount = 16

  static var name: String { "encode" }

  private let plan: Plan
  private var encoder: Encoder?
  /// The search for a result that fits a size limit or reaches a similarity, if there is one; the result is then
  /// emitted at the end.
  private var target: ByteTarget?
  private var hasStarted = false
  private var buffer: PixelBuffer?
  /// The options of the emitted result.
  private(set) var options: EncoderOptions
  private(set) var outputByteCount: UInt64 = 0
  /// The similarity of the result to its uncompressed rows, if it was measured.
  private(set) var similarity: Double?
  private var allowance: WorkAllowance?
  private var budget: ImageBudget?
  private var gauge: OutputGauge?
  private var received: ReceivedBytes?
  // The buffered result or its beginning, once it is final, and the number of its bytes that were emitted.
  private var chosen: (bytes: CompressedBytes, offset: UInt64)?
  private var isEncoded = false
  private(set) var isPaused = false

  init(_ plan: Plan) {
    self.plan = plan
    options = plan.encoder
  }

  /// Returns an upper bound of the bytes that this stage charges, including its trials for a size limit.
  func estimatedByteCount(_ layout: PixelLayout) throws(PipelineError) -> UInt64 {
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

  mutating func start(_ layout: PixelLayout, _ context: StageContext) throws(PipelineError) {
    let plan = plan
    buffer = try context.allocate { (budget) throws(CodecError) in
      try PixelBuffer(byteCount: Self.bufferByteCount, budget: budget)
    }
    encoder = try context.allocate { (budget) throws(CodecError) in
      try Encoder(options: plan.encoder, budget: budget)
    }
    allowance = context.allowance
    budget = context.budget
    gauge = context.gauge
    received = context.received
  }

  /// Encodes rows and emits the bytes that they complete, a few rows at a time, so that little output accumulates.
  mutating func push(_ strip: borrowing Strip, _ output: (RawSpan) -> Void) throws(PipelineError) {
    if !hasStarted { try startTarget() }
    var waiting = (0..<strip.format.planeCount).map { strip.plane($0) }
    while waiting.contains(where: { $0.rowCount > 0 }) {
      // A few rows of an image can become any number of result rows.
      try allowance?.check()
      var portion = waiting.map { $0.prefix(Self.rowCount) }
      if strip.format == .ycc8, options.subsampling == .quarter {
        for index in 1...2 { portion[index] = portion[index].prefix(Self.rowCount / 2) }
      }
      for index in waiting.indices { waiting[index].dropFirst(portion[index].rowCount) }
      try push(portion: Strip(format: strip.format, rows: portion))
      try drain(output)
    }
    release()
    handOutChosen(output)
  }

  /// Starts the search, unless the file is already known to be large enough for any result.
  private mutating func startTarget() throws(PipelineError) {
    hasStarted = true
    guard let limit = plan.byteLimit, let budget, !limit.isSettled(received: received?.byteCount ?? 0) else { return }
    target = try ByteTarget(limit, encoder: plan.encoder, budget: budget)
  }

  /// Ends the search once the file is known to be large enough for any result: the first trial is then the result.
  private mutating func release() {
    guard let first = target?.firstTrial, let limit = plan.byteLimit,
      limit.isSettled(received: received?.byteCount ?? 0)
    else { return }
    target = nil
    outputByteCount = first.byteCount
    chosen = (first, 0)
  }

  private mutating func push(portion: borrowing Strip) throws(PipelineError) {
    do { try encoder?.write(portion) } catch { throw PipelineError(error) }
    target?.hold(portion)
  }

  /// Emits the bytes that are compressed so far: all of them, or until enough output is waiting if the encoder has
  /// finished.
  private mutating func drain(_ output: (RawSpan) -> Void) throws(PipelineError) {
    guard let buffer else { return }
    while encoder != nil {
      let count = encoder!.read(into: buffer)
      if count == 0 { return }
      try buffer.withBytes(count) { (bytes) throws(PipelineError) in
        if target != nil { return try target!.collect(bytes) }
        outputByteCount += UInt64(count)
        if chosen != nil { return try chosen!.bytes.append(bytes) }
        output(bytes)
      }
      if isEncoded, target == nil, chosen == nil, gauge?.isFull == true {
        isPaused = true
        return
      }
    }
  }

  /// Finishes the result and emits the rest, pausing when enough output is waiting.
  mutating func finish(_ end: ImageEnd, _ output: (RawSpan) -> Void) throws(PipelineError) {
    isPaused = false
    if !isEncoded {
      if !end.trailingMetadata.isEmpty {
        do { try encoder?.append(exif: end.trailingMetadata) } catch { throw PipelineError(error) }
      }
      if encoder != nil { try allowance?.finish(&encoder!) }
      isEncoded = true
    }
    // The memory for output that encoders emit only at their end is already charged.
    isPaused = target == nil && gauge?.isFull == true
    if isPaused { return }
    try drain(output)
    if isPaused { return }
    encoder = nil
    try settle(end)
    handOutChosen(output)
    isPaused = chosen != nil
  }

  /// Chooses the result that fits the size limit, if there is one.
  private mutating func settle(_ end: ImageEnd) throws(PipelineError) {
    guard let buffer, let allowance else { return }
    guard let result = try target?.settle(end, buffer, allowance) else { return }
    target = nil
    options = result.options
    similarity = result.similarity
    outputByteCount = result.bytes.byteCount
    chosen = (result.bytes, 0)
  }

  /// Emits buffered bytes of the result until enough output is waiting.
  private mutating func handOutChosen(_ output: (RawSpan) -> Void) {
    while let (bytes, offset) = chosen, gauge?.isFull != true {
      if offset == bytes.byteCount {
        chosen = nil
      } else {
        chosen?.offset += UInt64(bytes.withChunk(at: offset, output))
      }
    }
  }

  func describe(_ attributes: inout StageMeter.Attributes) {
    attributes["imageworker.format"] = .string(options.format.rawValue)
    attributes["imageworker.width"] = .int64(Int64(options.width))
    attributes["imageworker.height"] = .int64(Int64(options.height))
    attributes["imageworker.pixels"] = .int64(Int64(options.width * options.height))
    attributes["imageworker.quality"] = .int64(Int64(options.quality))
    attributes["imageworker.bytes"] = .int64(Int64(outputByteCount))
    attributes["imageworker.peak_memory_bytes"] = .int64(Int64(budget?.peak ?? 0))
  }
}
