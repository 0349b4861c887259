internal import ImageCodecs

extension ImageReader {
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
        let profile = decoder.profile
        try budget.charge(profile.count)
        return profile
      }
    }
    if metadata.byteCount == 0, configurations.contains(where: \.readsMetadata) {
      metadata = try withDecoder { (decoder) throws(CodecError) in
        let metadata = decoder.metadata
        // As stored, and as edited for each result.
        try budget.charge(metadata.byteCount * (1 + configurations.count))
        return metadata
      }
    }
    return ImageAttachments(profile: profile, metadata: metadata, budget: budget)
  }
}
