internal import LibC

extension ProcessingConfiguration {
  /// The radius of `sharpenReduced`, in pixels of the result: about the width of the blur that a reduction leaves.
  private static let sharpeningRadius = 0.7
  /// The base 2 logarithm of the reduction from which on an image is sharpened by the whole amount.
  private static let wholeSharpening = 3.0

  /// Returns the filter that `sharpenReduced` stands for, or none if the image is not reduced enough to be sharpened.
  /// - `reduction`: the ratio of the framing's window to the size of the image in the result.
  func sharpening(reduction: Double) -> [Filter] {
    guard let sharpenReduced, reduction > 1 else { return [] }
    let share = min(1, log2(reduction) / Self.wholeSharpening)
    let amount = (100 * sharpenReduced * share).rounded() / 100
    guard amount > 0 else { return [] }
    return [Filter(name: FilterKind.sharpen.rawValue, parameters: ["radius": Self.sharpeningRadius, "amount": amount])]
  }
}
