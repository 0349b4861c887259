internal import ImageCodecs

/// The plans of an image whose header is complete.
extension ImageReader {
  /// Plans one result of this image; must be called after the header is complete.
  /// - Parameters:
  ///   - configuration: The configuration of the result.
  ///   - followingByteCount: The number of bytes of the image that were not consumed, if the rest of the file is known.
  /// - Returns: The plan, with the working set of the whole image.
  /// - Throws: `invalidField`, `unservedField`, `corruptImage`, `limitExceeded`.
  package mutating func plan(
    _ configuration: ProcessingConfiguration, followingByteCount: UInt64? = nil
  ) throws(PipelineError) -> Plan {
    let image = try plan([configuration], followingByteCount: followingByteCount)
    var plan = try image.renditions[0].get()
    plan.workingSetByteCount = image.workingSetByteCount
    return plan
  }

  /// Plans a result for each configuration; must be called after the header is complete.
  ///
  /// The image is decoded at the scale that the most demanding rendition needs.
  /// - Parameters:
  ///   - configurations: The configurations of the renditions.
  ///   - followingByteCount: The number of bytes of the image that were not consumed, if the rest of the file is known.
  /// - Returns: The plan, which contains the errors of renditions that cannot be produced.
  /// - Throws: `limitExceeded` if the renditions together exceed a limit; `corruptImage` if the header is damaged and
  ///   no configuration tolerates that.
  package mutating func plan(
    _ configurations: [ProcessingConfiguration], followingByteCount: UInt64? = nil
  ) throws(PipelineError) -> ImagePlan {
    try selectFrames(configurations)
    guard let header else { throw .unfinishedHeader }
    var configurations = configurations
    if isInspection {
      configurations = try configurations.map { (each) throws(PipelineError) in try each.withoutAnalysis(of: header) }
    }
    if !configurations.contains(where: { $0.tolerateDamage ?? false }) { try PlanDraft.checkHeader(header) }
    let drafts = configurations.map { configuration in
      Result { () throws(PipelineError) in try PlanDraft(configuration, of: header, findings) }
    }
    var plan = try decodedPlan(header, drafts)
    let decodingByteCount = plan.workingSetByteCount
    // If one rendition must be decoded, all of them are.
    if drafts.count == 1, case .success(var only) = plan.renditions[0] {
      try choosePassthrough(&only, header, configurations[0], followingByteCount)
      plan = ImagePlan(only)
    }
    if let source = try gainMapSource() {
      try planGainMap(
        source, &plan, configurations, decodingByteCount: decodingByteCount, followingByteCount: followingByteCount)
    }
    try describeGainMap(&plan)
    return try checked(plan)
  }

  /// The maximum side of a preview in pixels, unless another one is requested.
  package static let maxPreviewSide = 300

  /// Plans a small preview of a configuration's result; must be called after the header is complete.
  /// - Parameters:
  ///   - configuration: The configuration of the result that the preview represents.
  ///   - maxSide: The maximum side of the preview in pixels.
  /// - Returns: The plan, with the preview as its only rendition.
  /// - Throws: The errors of planning the result itself; `limitExceeded` if the preview exceeds a limit.
  package mutating func previewPlan(
    _ configuration: ProcessingConfiguration, maxSide: Int = ImageReader.maxPreviewSide
  ) throws(PipelineError) -> ImagePlan {
    var configuration = configuration
    guard let header else { throw .unfinishedHeader }
    if header.hasDefaultImage, configuration.maxFrames ?? 1 != 1 {
      configuration.frameIndex = configuration.frameIndex ?? FrameIndex(0)
    }
    configuration.maxFrames = nil
    try selectFrames([configuration])
    if isInspection { configuration = try configuration.withoutAnalysis(of: header) }
    let draft = try PlanDraft(configuration, of: header, findings)
    return try checked(decodedPlan(header, [.success(draft.preview(of: header, maxSide: maxSide))]))
  }

  /// Plans renditions that are all encoded from decoded rows; if the memory limit requires it, without `never_larger`,
  /// or with a fallback format.
  mutating func decodedPlan(
    _ header: ImageHeader, _ drafts: [Result<PlanDraft, PipelineError>]
  ) throws(PipelineError) -> ImagePlan {
    let plan = try roomyPlan(header, drafts)
    guard plan.workingSetByteCount > UInt64(limits.memory) else { return plan }
    if plan.plans.contains(where: { $0.byteLimit?.neverLarger != nil }) {
      let plan = try roomyPlan(header, drafts.map { draft in draft.map(\.allowingLarger) })
      if plan.workingSetByteCount <= UInt64(limits.memory) { return plan }
    }
    return try roomyPlan(header, drafts.map { draft in draft.map { $0.allowingLarger.fallingBack(header) } })
  }

  /// Plans the renditions without regard to the memory limit.
  private mutating func roomyPlan(
    _ header: ImageHeader, _ drafts: [Result<PlanDraft, PipelineError>]
  ) throws(PipelineError) -> ImagePlan {
    let usable = drafts.compactMap { if case .success(let draft) = $0 { draft } else { nil } }
    let toleratesTruncation = usable.contains { $0.configuration.tolerateTruncation ?? false }
    let toleratesDamage = usable.contains { $0.configuration.tolerateDamage ?? false }
    let attachments = try readAttachments(usable.map(\.configuration))
    let storedByteCount = UInt64((stored?.chargedByteCount ?? 0) + (gainMaps?.byteCount ?? 0))
    let (scale, decodeByteCount) = try withDecoder { (decoder) throws(CodecError) in
      let scales = decoder.scales
      let scale = usable.map { $0.decodeScale(of: scales) }.max() ?? 8
      let byteCount = try decoder.estimatedByteCount(
        scale: scale, toleratesTruncation: toleratesTruncation, toleratesDamage: toleratesDamage)
      return (scale, byteCount + storedByteCount)
    }
    let plans = drafts.map { draft in
      draft.flatMap { draft in
        Result { () throws(PipelineError) in
          var plan = try Plan(
            draft, of: header, frames: selectedFrames, decodeScale: scale, decodeByteCount: decodeByteCount,
            attachments: attachments, spill: limits.spill)
          if plan.hasOverlays {
            plan.setOverlays(try plannedOverlays(plan, draft), header, decodeByteCount: decodeByteCount)
          }
          return plan
        }
      }
    }
    return ImagePlan(plans, decodeByteCount: decodeByteCount)
  }

  private func checked(_ image: ImagePlan) throws(PipelineError) -> ImagePlan {
    var plan = image
    // Reading the header may have needed more memory than the rest will.
    plan.workingSetByteCount = max(plan.workingSetByteCount, UInt64(budget.peak))
    let memory = UInt64(max(limits.memory, header?.isDecodedWhole == true ? limits.frameMemory : 0))
    guard plan.workingSetByteCount <= memory else { throw PipelineError(exceeding: memory, plan) }
    if plan.workingSetByteCount > UInt64(limits.memory) { budget.raiseLimit(to: Int(plan.reservedByteCount)) }
    guard plan.workPixelCount <= limits.maxWorkPixels else {
      throw PipelineError(
        exceeding: "max_work_pixels", limit: limits.maxWorkPixels, value: plan.workPixelCount,
        unit: "pixels of results, counted for encoding, scaling and each pass of a filter")
    }
    return plan
  }

  /// Returns the profile and the metadata that results contain.
  ///
  /// They are charged for as long as the image lives.
  mutating func readAttachments(
    _ configurations: [ProcessingConfiguration]
  ) throws(PipelineError) -> ImageAttachments {
    let budget = budget
    let keepsProfile =
      (header?.gamut == .other || header?.gamut == .hdr) && configurations.contains { $0.colorSpace == .keep }
    if profile.isEmpty, keepsProfile || configurations.contains(where: \.hidesPixels) {
      profile = try withDecoder { (decoder) throws(CodecError) in
        try budget.charge(decoder.profileByteCount)
        return decoder.profile
      }
    }
    if metadata.byteCount == 0, configurations.contains(where: \.readsMetadata) {
      metadata = try withDecoder { (decoder) throws(CodecError) in
        // As stored, and as edited for each result.
        try budget.charge(decoder.metadataByteCount * (1 + configurations.count))
        return decoder.metadata
      }
    }
    return ImageAttachments(profile: profile, metadata: metadata, budget: budget)
  }

  /// Returns whether a result needs the whole file of which the decoder would buffer a part only: for another image than
  /// the first, to count a frame from the end, to pass an animation through, or because only an image that is buffered as
  /// a whole may use so much memory.
  mutating func needsWholeFile() throws(PipelineError) -> Bool {
    guard let header, header.canBufferInput, !configurations.isEmpty else { return false }
    let indices = configurations.map { $0.frameIndex?.value ?? 0 }
    if header.hasPages { return indices.contains { $0 != 0 } }
    if countedFrames == nil, indices.contains(where: { $0 < 0 }) { return true }
    try selectFrames(configurations)
    guard let selected = self.header else { throw .unfinishedHeader }
    let drafts = configurations.map { configuration in
      Result { () throws(PipelineError) in try PlanDraft(configuration, of: selected) }
    }
    let image = try decodedPlan(selected, drafts)
    if image.workingSetByteCount > UInt64(limits.memory) { return true }
    guard configurations.count == 1, case .success(let plan) = image.renditions[0] else { return false }
    return try mayPassThrough(plan, selected)
  }

  /// Chooses passthrough if its result is as good as that of decoding and there is enough memory for it.
  mutating func choosePassthrough(
    _ plan: inout Plan, _ header: ImageHeader, _ configuration: ProcessingConfiguration,
    _ followingByteCount: UInt64?
  ) throws(PipelineError) {
    guard let rewriter = rewriter.take(), plan.keepsPixels else { return }
    let survey = try withDecoder { decoder in rewriter.survey(decoder) }
    let passthrough = Passthrough(
      plan: plan, header: header, configuration: configuration, survey: survey,
      byteCount: followingByteCount.map { inputByteCount + $0 })
    guard passthrough != .decoded else { return }
    let (orientation, metadata) = (plan.orientation, passthrough.metadata(plan.encoder))
    let recoding = passthrough.recoding(plan.encoder)
    let rewritingByteCount = try withDecoder { decoder in
      rewriter.estimatedByteCount(
        decoder, orientation: orientation, metadata: metadata, recoding: recoding)
    }
    guard rewritingByteCount <= passthrough.maxByteCount(memory: limits.memory) else { return }
    plan.passthrough = passthrough
    plan.workingSetByteCount = rewritingByteCount
    if passthrough == .copied { try addTrial(to: &plan, header) }
    self.rewriter = consume rewriter
  }

  /// Adds decoding to the plan of an image that is copied, if there is enough memory for it.
  private mutating func addTrial(to plan: inout Plan, _ header: ImageHeader) throws(PipelineError) {
    // The estimate includes what the current decoder has allocated, as the decoder of the trial allocates about as much
    // for its header.
    let (scale, byteCount) = try withDecoder { (decoder) throws(CodecError) in
      let scale = PassthroughTrial.scale(of: header, scales: decoder.scales)
      return (scale, try decoder.estimatedByteCount(scale: scale))
    }
    guard plan.workingSetByteCount + byteCount <= UInt64(limits.memory) else {
      plan.warnings.append(.uncheckedDamage)
      return
    }
    plan.trialScale = scale
    plan.workingSetByteCount += byteCount
  }

  /// Returns whether an animation may be passed through once its whole file is known.
  mutating func mayPassThrough(_ plan: Plan, _ header: ImageHeader) throws(PipelineError) -> Bool {
    guard let rewriter = rewriter.take() else { return false }
    var survey = try withDecoder { decoder in rewriter.survey(decoder) }
    self.rewriter = consume rewriter
    survey.canCopy = survey.mayCopyWhole
    let passthrough = Passthrough(
      plan: plan, header: header, configuration: configurations[0], survey: survey, byteCount: nil)
    return passthrough != .decoded
  }
}
