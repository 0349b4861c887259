extension ProcessingConfiguration {
  /// The maximum side in pixels of a result of which nothing but its facts is needed.
  private static let maxSideForFacts = 400

  /// A configuration whose small result shows the same part of the image, for nothing but its facts.
  package var forFactsAlone: ProcessingConfiguration {
    var small = ProcessingConfiguration(
      maxWidth: Self.maxSideForFacts, maxHeight: Self.maxSideForFacts, compressionQuality: 0.1, preferredFormat: .jpeg,
      crop: crop, rotation: rotation, flipHorizontal: flipHorizontal, flipVertical: flipVertical, alwaysEncode: true,
      facts: true)
    small.frameIndex = frameIndex
    // What is hidden must not be seen in the facts either.
    small.regions = regions
    (small.tolerateTruncation, small.tolerateDamage) = (tolerateTruncation, tolerateDamage)
    return small
  }
}
