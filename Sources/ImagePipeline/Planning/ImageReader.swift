internal import ImageCodecs

/// Takes an image's first bytes until its format and header are known.
///
/// Nothing is decoded and little is allocated: a few kilobytes, or the file itself for formats whose decoder needs all
/// of it. When `push` says that the header is complete, `header` can be asked, and the reader turned into a `Pipeline`.
package struct ImageReader: ~Copyable {
  let limits: ImageLimits
  let budget: ImageBudget
  // Bytes held only while there are too few of them to name the format.
  private var prefix: [UInt8] = []
  private var decoder: Decoder?
  // Follows the header, for the case that the image need not be decoded.
  private var rewriter: Rewriter?
  private(set) var inputByteCount: UInt64 = 0

  package init(limits: ImageLimits) {
    self.limits = limits
    budget = ImageBudget(limit: limits.memory)
  }

  /// Takes the next bytes, until the header is complete.
  /// - Returns: whether the header is complete, and how many of the bytes were consumed. What was not consumed belongs
  ///   to the `Pipeline`.
  /// - Throws: `emptyImage`, `unknownFormat`, `unsupportedImage`, `corruptImage`, `truncatedImage`, `limitExceeded`.
  package mutating func push(
    _ bytes: RawSpan, isLast: Bool
  ) throws(PipelineError) -> (isComplete: Bool, consumedByteCount: Int) {
    var consumed = 0
    if decoder == nil {
      guard try sniff(bytes, isLast: isLast, consumed: &consumed) else { return (false, consumed) }
      if !prefix.isEmpty {
        let isComplete = try readPrefix(isLast: isLast && consumed == bytes.byteCount)
        if isComplete { return (true, consumed) }
      }
    }
    let rest = bytes.extracting(droppingFirst: consumed)
    let (isComplete, count) = try withDecoder { (decoder) throws(CodecError) in
      let progress = try decoder.readHeader(rest, isLast: isLast)
      return (progress.value, progress.consumedByteCount)
    }
    inputByteCount += UInt64(count)
    note(rest.extracting(first: count))
    if isComplete { header = try withDecoder { (decoder) in decoder.header } }
    return (isComplete, consumed + count)
  }

  /// The name of a file's format by its first bytes; `nil` where they are too few, or of none that is known.
  package static func formatName(_ bytes: RawSpan) -> String? {
    bytes.isEmpty ? nil : ImageFormat.sniff(bytes)?.rawValue
  }

  /// How many more bytes a file's header needs at least, by its beginning; `nil` where the format does not tell.
  package static func missingByteCount(_ bytes: RawSpan) -> Int? { HeaderExtent.missingByteCount(bytes) }

  /// The bytes that the reader holds.
  package var bufferedByteCount: Int { budget.used }

  /// What the file says of its image; `nil` until the header is complete.
  private(set) var header: ImageHeader?

  /// Bytes that must be given to the decoder before any that still arrive.
  var leftover: [UInt8] { prefix }

  /// The decoder, which has read its header.
  consuming func takeDecoder() throws(PipelineError) -> Decoder {
    guard let decoder = decoder.take() else { throw .unfinishedHeader }
    return decoder
  }

  /// The rewriter, started as the plan says, which has taken over what the decoder held.
  consuming func startRewriter(_ plan: Plan) throws(PipelineError) -> Rewriter {
    guard let decoder = decoder.take(), var rewriter = rewriter.take() else { throw .unfinishedHeader }
    do {
      try rewriter.start(
        decoder, orientation: plan.orientation, exif: plan.encoder.exif, mayLackEnd: plan.trialScale != nil)
    } catch { throw PipelineError(error) }
    return rewriter
  }

  /// The trial that the plan asks for.
  func makeTrial(_ plan: Plan) throws(PipelineError) -> PassthroughTrial? {
    guard let scale = plan.trialScale, let format = header?.format else { return nil }
    return try PassthroughTrial(format: format, scale: scale, limits: limits.codec, budget: budget)
  }

  /// The plan for this image with one result.
  ///
  /// Legal once the header is complete.
  /// - `following`: the bytes of the image that were not consumed, where all of them are known.
  /// - Throws: `invalidField`, `unservedField`, `limitExceeded` as `Plan.init` does.
  package mutating func plan(
    _ configuration: ProcessingConfiguration, following: RawSpan? = nil
  ) throws(PipelineError) -> Plan {
    let image = try plan([configuration], following: following)
    var plan = try image.renditions[0].get()
    plan.workingSetByteCount = image.workingSetByteCount
    return plan
  }

  /// The plan for this image with a result for each configuration.
  ///
  /// It is decoded at the scale that the most demanding of them needs. Legal once the header is complete.
  /// - `following`: the bytes of the image that were not consumed, where all of them are known.
  /// - Throws: `limitExceeded` when there is no room for all that could be made.
  package mutating func plan(
    _ configurations: [ProcessingConfiguration], following: RawSpan? = nil
  ) throws(PipelineError) -> ImagePlan {
    guard let header else { throw .unfinishedHeader }
    if !configurations.contains(where: { $0.tolerateDamage ?? false }) { try PlanDraft.checkHeader(header) }
    let drafts = configurations.map { configuration in
      Result { () throws(PipelineError) in try PlanDraft(configuration, of: header) }
    }
    var plan = try decodedPlan(header, drafts)
    // What is decoded for others is decoded for all.
    if drafts.count == 1, case .success(var only) = plan.renditions[0] {
      try choosePassthrough(&only, header, configurations[0], following)
      plan = ImagePlan(only)
    }
    return try checked(plan)
  }

  /// The plan for a small image that shows what a configuration's result will.
  ///
  /// Legal once the header is complete.
  /// - Throws: what planning the result itself throws; `limitExceeded` when there is no room.
  package mutating func previewPlan(_ configuration: ProcessingConfiguration) throws(PipelineError) -> ImagePlan {
    guard let header else { throw .unfinishedHeader }
    let draft = try PlanDraft(configuration, of: header)
    return try checked(decodedPlan(header, [.success(draft.preview(of: header))]))
  }

  /// - `drafts`: of renditions that are all made from decoded rows.
  private mutating func decodedPlan(
    _ header: ImageHeader, _ drafts: [Result<PlanDraft, PipelineError>]
  ) throws(PipelineError) -> ImagePlan {
    let plan = try roomyPlan(header, drafts)
    guard plan.workingSetByteCount > UInt64(limits.memory) else { return plan }
    return try roomyPlan(header, drafts.map { draft in draft.map { $0.fallingBack(header) } })
  }

  /// The same, in whatever memory it needs.
  private mutating func roomyPlan(
    _ header: ImageHeader, _ drafts: [Result<PlanDraft, PipelineError>]
  ) throws(PipelineError) -> ImagePlan {
    let usable = drafts.compactMap { if case .success(let draft) = $0 { draft } else { nil } }
    let toleratesTruncation = usable.contains { $0.configuration.tolerateTruncation ?? false }
    let toleratesDamage = usable.contains { $0.configuration.tolerateDamage ?? false }
    let (scale, decodeByteCount) = try withDecoder { (decoder) throws(CodecError) in
      let scales = decoder.scales
      let scale = usable.map { $0.decodeScale(of: scales) }.max() ?? 8
      let byteCount = try decoder.estimatedByteCount(
        scale: scale, toleratesTruncation: toleratesTruncation, toleratesDamage: toleratesDamage)
      return (scale, byteCount)
    }
    let plans = drafts.map { draft in
      draft.flatMap { draft in
        Result { () throws(PipelineError) in
          var plan = try Plan(
            header: header, orientation: draft.orientation, framing: draft.framing, decodeScale: scale,
            decodeByteCount: decodeByteCount, configuration: draft.configuration)
          if let warning = draft.fallbackWarning { plan.warnings.append(warning) }
          return plan
        }
      }
    }
    return ImagePlan(plans, decodeByteCount: decodeByteCount)
  }

  private func checked(_ image: ImagePlan) throws(PipelineError) -> ImagePlan {
    var plan = image
    // A header may have taken more than what comes after it.
    plan.workingSetByteCount = max(plan.workingSetByteCount, UInt64(budget.peak))
    guard plan.workingSetByteCount <= UInt64(limits.memory) else {
      throw PipelineError(
        exceeding: "image_memory_limit", limit: UInt64(limits.memory), value: plan.workingSetByteCount,
        unit: "bytes of memory")
    }
    guard plan.workPixelCount <= limits.maxWorkPixels else {
      throw PipelineError(
        exceeding: "max_work_pixels", limit: limits.maxWorkPixels, value: plan.workPixelCount,
        unit: "pixels of results, counted for encoding, scaling and each pass of a filter")
    }
    return plan
  }

  /// Plans not to decode the image where that serves as well, and there is memory for it.
  private mutating func choosePassthrough(
    _ plan: inout Plan, _ header: ImageHeader, _ configuration: ProcessingConfiguration, _ following: RawSpan?
  ) throws(PipelineError) {
    guard let rewriter = rewriter.take() else { return }
    let (orientation, exif) = (plan.orientation, plan.encoder.exif)
    let (survey, rewritingByteCount) = try withDecoder { decoder in
      (
        rewriter.survey(decoder),
        rewriter.estimatedByteCount(decoder, orientation: orientation, exif: exif)
      )
    }
    var byteCount = rewritingByteCount
    var fileByteCount: UInt64?
    if let following { fileByteCount = inputByteCount + UInt64(following.byteCount) }
    let passthrough = Passthrough(
      plan: plan, header: header, configuration: configuration, survey: survey, byteCount: fileByteCount)
    let trialScale = passthrough == .copied ? PassthroughTrial.scale(header, following: following) : nil
    if let trialScale {
      // With what this decoder holds, as that of the trial holds about as much when it has read its header.
      byteCount += try withDecoder { (decoder) throws(CodecError) in
        try decoder.estimatedByteCount(scale: trialScale == 1 ? decoder.scales[0] : 8)
      }
    }
    if passthrough != .decoded, byteCount <= passthrough.maxByteCount(memory: limits.memory) {
      plan.passthrough = passthrough
      plan.trialScale = trialScale
      plan.workingSetByteCount = byteCount
      self.rewriter = consume rewriter
    }
  }

  private mutating func note(_ bytes: RawSpan) {
    guard var lent = rewriter.take() else { return }
    lent.note(bytes)
    rewriter = consume lent
  }

  private mutating func sniff(_ bytes: RawSpan, isLast: Bool, consumed: inout Int) throws(PipelineError) -> Bool {
    let format: ImageFormat?
    if prefix.isEmpty, bytes.byteCount >= ImageFormat.sniffByteCount || isLast {
      if bytes.isEmpty { throw PipelineError(.emptyImage, "the image has no bytes; send the bytes of an image file") }
      format = ImageFormat.sniff(bytes)
    } else {
      let taken = min(bytes.byteCount, ImageFormat.sniffByteCount - prefix.count)
      prefix.append(bytes.extracting(first: taken))
      consumed = taken
      inputByteCount += UInt64(taken)
      guard prefix.count == ImageFormat.sniffByteCount || isLast else { return false }
      if prefix.isEmpty { throw PipelineError(.emptyImage, "the image has no bytes; send the bytes of an image file") }
      format = prefix.withRawSpan { ImageFormat.sniff($0) }
    }
    guard let format else {
      throw PipelineError(.unknownFormat, "the first bytes match no known image format; send an image file")
    }
    guard format.isDecodable else {
      throw PipelineError(
        .unsupportedImage, "this worker was built without the decoder for \(format.rawValue); send another format")
    }
    do {
      decoder = try Decoder(format: format, limits: limits.codec, budget: budget)
      if format.isRewritable { rewriter = try Rewriter(format: format, limits: limits.codec, budget: budget) }
    } catch { throw PipelineError(error) }
    return true
  }

  private mutating func readPrefix(isLast: Bool) throws(PipelineError) -> Bool {
    let bytes = prefix
    let (isComplete, count) = try withDecoder { (decoder) throws(CodecError) in
      let progress = try bytes.withRawSpan { (bytes) throws(CodecError) in
        try decoder.readHeader(bytes, isLast: isLast)
      }
      return (progress.value, progress.consumedByteCount)
    }
    bytes.withRawSpan { note($0.extracting(first: count)) }
    prefix.removeFirst(count)
    if isComplete { header = try withDecoder { (decoder) in decoder.header } }
    return isComplete
  }

  /// Lends the decoder.
  ///
  /// When the work throws the decoder is gone, and with it the reader.
  private mutating func withDecoder<Result>(
    _ body: (inout Decoder) throws(CodecError) -> Result
  ) throws(PipelineError) -> Result {
    guard var lent = decoder.take() else { throw .unfinishedHeader }
    let result: Result
    do { result = try body(&lent) } catch { throw PipelineError(error) }
    decoder = consume lent
    return result
  }
}

extension PipelineError {
  fileprivate static let unfinishedHeader = PipelineError(
    .internalDefect, "an image was planned or decoded before its header was complete, or after it failed")
}
