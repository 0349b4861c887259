internal import ImageCodecs

/// A width and a height in whole pixels, both at least 1.
package struct PixelSize: Sendable, Hashable, CustomStringConvertible {
  /// Width in pixels.
  package var width: Int
  /// Height in pixels.
  package var height: Int

  package init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// Width times height.
  package var pixelCount: Int { width * height }

  /// The size as in `640x480`.
  package var description: String { "\(width)x\(height)" }

  /// Converts between the stored size and the displayed size of an image with `orientation`, in either direction.
  func rotated(by orientation: Orientation) -> PixelSize {
    orientation.swapsAxes ? PixelSize(width: height, height: width) : self
  }
}

/// Pure functions that compute the sizes of results.
package enum Geometry {
  /// Returns the smallest N of `scales` for which a window of an image decoded at N/8 is still at least `residual`
  /// times the target on both axes.
  ///
  /// The result is 8 if no scale satisfies this.
  package static func decodeScale(
    window: PixelSize, target: PixelSize, scales: [Int], residual: Double
  ) -> Int {
    scales.sorted().first { scale in
      let factor = Double(scale) / 8
      return Double(window.width) * factor >= Double(target.width) * residual
        && Double(window.height) * factor >= Double(target.height) * residual
    } ?? 8
  }
}
