/// An operation that computes each pixel from the pixels around it.
///
/// See "Area filters" in `cpixels.h`.
package enum AreaOperation: Sendable, Hashable {
  /// Gaussian blur.
  ///
  /// Source: W3C Filter Effects Module Level 1, `feGaussianBlur`, with `edgeMode` `duplicate`.
  case blur(radius: Double, share: Double)
  /// Unsharp mask: color + amount * (color - blurred) where the two differ by more than the threshold.
  case sharpen(radius: Double, amount: Double, threshold: Double)
  /// Replaces every pixel of a square block by the mean of the block.
  ///
  /// Incomplete blocks lie at the right and the bottom, as displayed.
  case pixelate(size: Int, share: Double)

  /// Whether the operation leaves every image unchanged.
  package var isIdentity: Bool {
    switch self {
    case .blur(_, let share): share == 0
    case .sharpen(_, let amount, _): amount == 0
    case .pixelate(let size, let share): size == 1 || share == 0
    }
  }

  /// The maximum number of rows above and below on which a row depends.
  package var haloRowCount: Int {
    switch self {
    case .blur(let radius, _), .sharpen(let radius, _, _): Int((3 * radius).rounded(.up))
    case .pixelate(let size, _): size - 1
    }
  }
}
