/// One thing that is done to every pixel by those around it.
///
/// See "Area filters" in `cpixels.h`.
enum AreaOperation: Sendable, Hashable {
  /// Source: W3C Filter Effects Module Level 1, `feGaussianBlur`, with `edgeMode` `duplicate`.
  case blur(radius: Double, share: Double)
  /// colour + amount * (colour - blurred), where the two differ by more than the threshold.
  case sharpen(radius: Double, amount: Double, threshold: Double)
  case pixelate(size: Int, share: Double)

  /// Whether it changes nothing.
  var isIdentity: Bool {
    switch self {
    case .blur(_, let share): share == 0
    case .sharpen(_, let amount, _): amount == 0
    case .pixelate(let size, let share): size == 1 || share == 0
    }
  }

  /// Rows above and below that a row depends on at most.
  var haloRowCount: Int {
    switch self {
    case .blur(let radius, _), .sharpen(let radius, _, _): Int((3 * radius).rounded(.up))
    case .pixelate(let size, _): size - 1
    }
  }
}
