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

  package var description: String { "\(width)x\(height)" }

  /// The size as shown of an image stored with this size, and the size as stored of one shown with it.
  func turned(by orientation: Orientation) -> PixelSize {
    orientation.swapsAxes ? PixelSize(width: height, height: width) : self
  }
}

/// Where results end up: pure functions of sizes.
package enum Geometry {
  /// The smallest N of `scales` for which a window of an image decoded at N/8 is still at least `residual` times the
  /// target on both axes; 8 when none is.
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
