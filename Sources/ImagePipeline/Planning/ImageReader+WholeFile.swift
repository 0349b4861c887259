internal import ImageCodecs

extension ImageReader {
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
}
