/// How one axis of one plane is resampled: see `cpixels.h`, "Geometry".
package struct AxisGeometry: Sendable, Hashable {
  /// The number of samples that are read, before resizing.
  package var sourceCount: Int
  /// The number of samples after resizing.
  package var destinationCount: Int
  /// Source samples per destination sample.
  package var ratio: Double
  /// Source samples.
  package var offset: Double
  /// How samples are made where the axis grows.
  package var enlargement: Enlargement
  /// Samples are resampled as if they were brought to twice as many first, by linear interpolation: as chroma is where
  /// decoders bring it to the image's size.
  package var isDoubled = false
  /// How much source samples are set off against their neighbours, see `cpixels.h`; without effect on kernels other than
  /// Lanczos'.
  package var emphasis = 0.0

  /// How samples between two input samples are computed.
  package enum Enlargement: Sendable, Hashable {
    /// As where it shrinks.
    case lanczos
    /// For chroma planes, as decoders do it: a kernel that rings would make colours that the image does not have
    /// beside sharp edges.
    case linear
    /// For chroma planes of one or two columns, in which libjpeg finds nothing to interpolate.
    case nearest

    /// - `width`: samples across the plane.
    package init(isChroma: Bool, width: Int) {
      self = !isChroma ? .lanczos : width > 2 ? .linear : .nearest
    }
  }

  /// Whether the output samples are the input samples.
  package var isIdentity: Bool {
    ratio == 1 && offset == 0 && sourceCount == destinationCount && !isDoubled && emphasis == 0
  }

  /// - `sourceCount`: samples of the source plane on this axis, from the first that lies in the window on.
  /// - `sourceScale`: samples of the source plane per pixel of the source image.
  /// - `sourceLength`: pixels of the source image's window on this axis.
  /// - `sourceStart`: where in the first sample the window begins, in samples.
  /// - `destinationScale`: samples of the destination plane per pixel of the destination image: 1, or 0.5.
  /// - `destinationLength`: pixels of the destination image on this axis.
  /// - `isReversed`: the axis is shown from last to first, so that the destination plane's samples must lie
  ///   correctly counted from its end.
  package init(
    sourceCount: Int, sourceScale: Double, sourceLength: Double, sourceStart: Double = 0,
    destinationScale: Double, destinationLength: Int, isReversed: Bool, enlargement: Enlargement = .lanczos
  ) {
    self.enlargement = enlargement
    self.sourceCount = sourceCount
    let exactCount = Double(destinationLength) * destinationScale
    destinationCount = Int(exactCount.rounded(.up))
    ratio = sourceLength * sourceScale / exactCount
    // A subsampled plane of an odd length overhangs the image by half a sample at its end; shown in reverse, the
    // overhang must lie at the start.
    let overhang = Double(destinationCount) - exactCount
    offset = sourceStart + (isReversed ? -overhang * ratio : 0)
  }
}
