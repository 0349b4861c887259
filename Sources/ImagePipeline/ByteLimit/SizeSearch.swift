internal import LibC

/// Chooses smaller dimensions for a result that exceeds its limit at minimum quality, from the sizes of earlier trials.
///
/// The logarithm of the file size is nearly linear in that of the area.
struct SizeSearch {
  /// The fraction of the limit that is close enough.
  private static let enough = 0.93

  private let limit: Double
  private let size: PixelSize
  private var failures: [(size: PixelSize, byteCount: Double)] = []
  private var fit: (size: PixelSize, byteCount: Double)?

  /// Creates a search.
  /// - `size`: The dimensions of the result that is too large.
  init(limit: UInt64, size: PixelSize) {
    self.limit = Double(limit)
    self.size = size
  }

  /// Records the size in bytes of a trial.
  mutating func note(_ size: PixelSize, byteCount: UInt64) {
    let count = max(1, Double(byteCount))
    if count <= limit { fit = (size, count) } else { failures.append((size, count)) }
  }

  /// Returns the next dimensions to try; `nil` if another trial is not worthwhile.
  func next(trialsLeft: Int) -> PixelSize? {
    guard let last = failures.last, trialsLeft > 0, last.size != PixelSize(width: 1, height: 1) else { return nil }
    let area: Double
    if let fit {
      guard fit.byteCount < limit * Self.enough else { return nil }
      area = self.area(from: fit, slope: slope(last, fit), aim: 0.98)
    } else {
      let before = failures.dropLast().last
      let slope = before.map { min(1.1, max(0.2, self.slope($0, last))) } ?? 0.85
      area = self.area(from: last, slope: slope, aim: trialsLeft == 1 ? 0.3 : 0.95 - 0.08 * Double(failures.count - 1))
    }
    let next = scaled(area: area)
    if let fit { return next.width > fit.size.width && next.width < last.size.width ? next : nil }
    return next.pixelCount < last.size.pixelCount ? next : nil
  }

  private func slope(_ a: (size: PixelSize, byteCount: Double), _ b: (size: PixelSize, byteCount: Double)) -> Double {
    log(a.byteCount / b.byteCount) / log(Double(a.size.pixelCount) / Double(b.size.pixelCount))
  }

  private func area(from trial: (size: PixelSize, byteCount: Double), slope: Double, aim: Double) -> Double {
    Double(trial.size.pixelCount) * exp(log(limit * aim / trial.byteCount) / max(slope, 0.05))
  }

  private func scaled(area: Double) -> PixelSize {
    let scale = min(1, (area / Double(size.pixelCount)).squareRoot())
    return PixelSize(
      width: max(1, Int((Double(size.width) * scale).rounded(.down))),
      height: max(1, Int((Double(size.height) * scale).rounded(.down))))
  }
}
