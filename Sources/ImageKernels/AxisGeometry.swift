/// A kernel for reducing and enlarging: see `cpixels_kernel` in `cpixels.h`.
package enum ResamplingKernel: String, Sendable, Hashable, CaseIterable {
  case lanczos3, lanczos2, mitchell, bicubic, bilinear, box, nearest

  /// The largest radius of a kernel, that of `lanczos3`, in pixels of a reduced image or of one to enlarge.
  package static let maxRadius = 3.0
}

/// The resampling geometry of one axis of a plane: see "Geometry" in `cpixels.h`.
package struct AxisGeometry: Sendable, Hashable {
  /// The number of source samples, before resizing.
  package var sourceCount: Int
  /// The number of destination samples, after resizing.
  package var destinationCount: Int
  /// The number of source samples per destination sample.
  package var ratio: Double
  /// The position of the destination's start, in source samples.
  package var offset: Double
  /// The kernel for reducing.
  package var kernel: ResamplingKernel
  /// The interpolation kernel for enlarging.
  package var enlargement: Enlargement
  /// Whether samples are resampled as if linear interpolation had doubled their number first.
  ///
  /// Decoders that bring chroma to the image's size do the same.
  package var isDoubled = false
  /// Whether the axis is displayed from last to first.
  package var isReversed = false
  /// The amount by which source samples are sharpened against their neighbors: see `cpixels.h`.
  ///
  /// It is ignored for kernels other than Lanczos.
  package var emphasis = 0.0

  /// An interpolation kernel for enlarging.
  package enum Enlargement: Sendable, Hashable {
    /// The same kernel as for reducing.
    case same
    /// Linear interpolation, for chroma planes, as in decoders.
    ///
    /// A kernel that rings would add colors next to sharp edges that the image does not have.
    case linear
    /// The nearest sample, for chroma planes of one or two columns, which libjpeg does not interpolate either.
    case nearest

    /// Selects the kernel for a plane.
    /// - `width`: the width of the plane in samples.
    package init(isChroma: Bool, width: Int) {
      self = !isChroma ? .same : width > 2 ? .linear : .nearest
    }
  }

  /// Whether the output samples equal the input samples.
  package var isIdentity: Bool {
    ratio == 1 && offset == 0 && sourceCount == destinationCount && !isDoubled && emphasis == 0
  }

  /// Creates the geometry of an axis for resizing a window of an image.
  /// - `sourceCount`: the number of samples of the source plane, starting with the first sample in the window.
  /// - `sourceScale`: the number of source plane samples per pixel of the source image.
  /// - `sourceLength`: the length of the window in pixels of the source image.
  /// - `sourceStart`: the position at which the window starts, in samples from the first one.
  /// - `destinationScale`: the number of destination plane samples per pixel of the destination image: 1 or 0.5.
  /// - `destinationLength`: the length of the destination image in pixels.
  /// - `kernel`: the kernel for reducing and, unless `enlargement` is another one, for enlarging.
  /// - `isReversed`: whether the axis is displayed from last to first, so that the samples of the destination plane
  ///   must be aligned with its end.
  package init(
    sourceCount: Int, sourceScale: Double, sourceLength: Double, sourceStart: Double = 0,
    destinationScale: Double, destinationLength: Int, isReversed: Bool, kernel: ResamplingKernel = .lanczos3,
    enlargement: Enlargement = .same
  ) {
    self.kernel = kernel
    self.enlargement = enlargement
    self.isReversed = isReversed
    self.sourceCount = sourceCount
    let exactCount = Double(destinationLength) * destinationScale
    destinationCount = Int(exactCount.rounded(.up))
    ratio = sourceLength * sourceScale / exactCount
    // A subsampled plane of an odd length overhangs the image by half a sample at its end. If it is displayed in
    // reverse, the overhang must be at the start.
    let overhang = Double(destinationCount) - exactCount
    offset = sourceStart + (isReversed ? -overhang * ratio : 0)
  }
}
