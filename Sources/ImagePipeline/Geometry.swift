internal import ImageCodecs

/// A width and a height in whole pixels, both at least 1.
package struct PixelSize: Sendable, Hashable, CustomStringConvertible {
  package var width: Int
  package var height: Int

  package init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  package var pixelCount: Int { width * height }

  package var description: String { "\(width)x\(height)" }

  /// The size as shown of a picture stored with this size, and the size as stored of one shown with it.
  func turned(by orientation: Orientation) -> PixelSize {
    orientation.swapsAxes ? PixelSize(width: height, height: width) : self
  }
}

/// Where results end up: pure functions of sizes.
package enum Geometry {
  /// The size of the result, in shown space.
  ///
  /// `fit` scales both sides by one factor such that both bounds hold, and never above 1 unless `allowUpscale`. Each
  /// side is rounded to the nearest pixel, and is at least 1. Bounds are divided by `scaleFactor`, rounded down, and
  /// are at least 1.
  package static func outputSize(of shown: PixelSize, configuration: ProcessingConfiguration) -> PixelSize {
    let factor = configuration.scaleFactor ?? 1
    func bound(_ value: Int?) -> Int? { value.map { max(1, Int(Double($0) / factor)) } }
    let (maxWidth, maxHeight) = (bound(configuration.maxWidth), bound(configuration.maxHeight))
    let mayGrow = configuration.allowUpscale ?? false

    if configuration.resizeMode == .stretch, let maxWidth, let maxHeight {
      return PixelSize(
        width: mayGrow ? maxWidth : min(maxWidth, shown.width),
        height: mayGrow ? maxHeight : min(maxHeight, shown.height))
    }
    let scales = [
      maxWidth.map { Double($0) / Double(shown.width) }, maxHeight.map { Double($0) / Double(shown.height) },
    ].compactMap(\.self)
    guard var scale = scales.min() else { return shown }
    if !mayGrow { scale = min(scale, 1) }
    func side(_ length: Int, _ bound: Int?) -> Int {
      let scaled = max(1, Int((Double(length) * scale).rounded()))
      return min(scaled, bound ?? ProcessingConfiguration.largestBound)
    }
    return PixelSize(width: side(shown.width, maxWidth), height: side(shown.height, maxHeight))
  }

  /// The smallest N of `scales` for which a picture decoded at N/8 is still at least `residual(N)` times the target on
  /// both axes; 8 when none is.
  package static func decodeScale(
    stored: PixelSize, target: PixelSize, scales: [Int], residual: (Int) -> Double
  ) -> Int {
    scales.sorted().first { scale in
      let (factor, residual) = (Double(scale) / 8, residual(scale))
      return Double(stored.width) * factor >= Double(target.width) * residual
        && Double(stored.height) * factor >= Double(target.height) * residual
    } ?? 8
  }
}

/// How one axis of one plane is resampled: see `cpixels.h`, "Geometry".
package struct AxisGeometry: Sendable, Hashable {
  package var sourceCount: Int
  package var destinationCount: Int
  /// Source samples per destination sample.
  package var ratio: Double
  /// Source samples.
  package var offset: Double
  /// How samples are made where the axis grows.
  package var enlargement: Enlargement

  package enum Enlargement: Sendable, Hashable {
    /// As where it shrinks.
    case lanczos
    /// For chroma planes, as decoders do it: a kernel that rings would make colours that the picture does not have
    /// beside sharp edges.
    case linear
    /// For chroma planes of one or two columns, in which libjpeg finds nothing to interpolate.
    case nearest

    /// - `width`: samples across the plane.
    package init(isChroma: Bool, width: Int) {
      self = !isChroma ? .lanczos : width > 2 ? .linear : .nearest
    }
  }

  package var isIdentity: Bool { ratio == 1 && offset == 0 && sourceCount == destinationCount }

  /// - `sourceCount`: samples of the source plane on this axis.
  /// - `sourceScale`: samples of the source plane per pixel of the source picture.
  /// - `sourceLength`: pixels of the source picture on this axis.
  /// - `destinationScale`: samples of the destination plane per pixel of the destination picture: 1, or 0.5.
  /// - `destinationLength`: pixels of the destination picture on this axis.
  /// - `isReversed`: the axis is shown from last to first, so that the destination plane's samples must lie
  ///   correctly counted from its end.
  package init(
    sourceCount: Int, sourceScale: Double, sourceLength: Int,
    destinationScale: Double, destinationLength: Int, isReversed: Bool, enlargement: Enlargement = .lanczos
  ) {
    self.enlargement = enlargement
    self.sourceCount = sourceCount
    let exactCount = Double(destinationLength) * destinationScale
    destinationCount = Int(exactCount.rounded(.up))
    ratio = Double(sourceLength) * sourceScale / exactCount
    // A subsampled plane of an odd length overhangs the picture by half a sample at its end; shown in reverse, the
    // overhang must lie at the start.
    let overhang = Double(destinationCount) - exactCount
    offset = isReversed ? -overhang * ratio : 0
  }
}
