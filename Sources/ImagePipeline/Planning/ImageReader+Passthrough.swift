internal import ImageCodecs

extension ImageReader {
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
