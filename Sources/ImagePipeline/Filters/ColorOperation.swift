internal import ImageKernels
internal import LibC

/// An operation that computes each pixel from itself alone, and then clamps its colors to 0 to 1.
enum ColorOperation: Sendable, Hashable {
  case matrix(ColorMatrix)
  case curve(ToneCurve)
  /// Mixes into the image white if its luminance reaches the level, and black otherwise.
  case threshold(level: Double, share: Double)
  /// Darkens towards the corners; see `CPIXELS_COLOR_VIGNETTE` in `cpixels.h`.
  case vignette(radius: Double, softness: Double, share: Double)

  /// The equivalent matrix before clamping; `nil` if there is none.
  var matrix: ColorMatrix? {
    switch self {
    case .matrix(let matrix): matrix
    case .curve(.linear(let slope, let intercept)):
      ColorMatrix(diagonal: [slope, slope, slope], constant: intercept)
    default: nil
    }
  }

  var isCurve: Bool {
    if case .curve = self { true } else { false }
  }

  /// Whether the operation leaves every image unchanged.
  var isIdentity: Bool {
    switch self {
    case .matrix(let matrix): matrix.isIdentity
    case .curve(let curve): curve.isIdentity
    case .threshold(_, let share): share == 0
    case .vignette(let radius, _, let share): share == 0 || radius >= 1
    }
  }

  /// Returns the range of each channel's output for the given input ranges.
  func image(of ranges: [ClosedRange<Double>]) -> [ClosedRange<Double>] {
    switch self {
    case .matrix(let matrix):
      matrix.image(of: ranges).map { min(1, max(0, $0.lowerBound))...min(1, max(0, $0.upperBound)) }
    case .curve(let curve): ranges.map { curve.image(of: $0) }
    case .threshold, .vignette: ranges.map { _ in 0...1 }
    }
  }
}

/// The operation that a filter performs.
enum FilterEffect: Sendable, Hashable {
  case color(ColorOperation)
  case area(AreaOperation)
}

extension FilterSettings {
  /// The operation of the filter with its intensity and parameters applied; `nil` if it changes nothing.
  ///
  /// The intensity mixes linearly, input + intensity * (formula - input), and only the mixture is clamped. For
  /// `grayscale`, `sepia` and `invert`, the intensity is the amount of the functions of the same names in the W3C
  /// Filter Effects Module Level 1; for `brightness`, `contrast` and `saturation` (`saturate()`), it scales the amount
  /// less 1.
  var effect: FilterEffect? {
    guard intensity > 0 else { return nil }
    if let operation = colorOperation { return operation.isIdentity ? nil : .color(operation) }
    guard let operation = areaOperation, !operation.isIdentity else { return nil }
    return .area(operation)
  }

  private var colorOperation: ColorOperation? {
    switch kind {
    case .grayscale: return .matrix(ColorMatrix.grayscale.mixed(share: intensity))
    case .sepia: return .matrix(ColorMatrix.sepia.mixed(share: intensity))
    case .saturation: return .matrix(ColorMatrix.saturation(self["amount"]).mixed(share: intensity))
    case .hue: return .matrix(ColorMatrix.hue(degrees: self["angle"]).mixed(share: intensity))
    // Blend mode "multiply" of Compositing and Blending Level 1, with an image of one color.
    case .tint: return .matrix(ColorMatrix(diagonal: color("")).mixed(share: intensity))
    case .duotone:
      return .matrix(ColorMatrix.duotone(dark: color("dark_"), light: color("light_")).mixed(share: intensity))
    // The table [1, 0] of "invert" in Filter Effects: 1 - x.
    case .invert: return line(slope: -1, intercept: 1)
    case .brightness: return line(slope: self["amount"], intercept: 0)
    case .contrast: return line(slope: self["amount"], intercept: 0.5 - 0.5 * self["amount"])
    case .gamma:
      return .curve(
        .power(
          exponent: self["exponent"], amplitude: self["amplitude"], offset: self["offset"], share: intensity))
    case .exposure: return .curve(.exposure(gain: exp2(self["stops"]), share: intensity))
    case .threshold: return .threshold(level: self["level"], share: intensity)
    case .vignette: return .vignette(radius: self["radius"], softness: self["softness"], share: intensity)
    case .blur, .sharpen, .pixelate: return nil
    }
  }

  private var areaOperation: AreaOperation? {
    switch kind {
    case .blur: .blur(radius: self["radius"], share: intensity)
    case .sharpen:
      .sharpen(radius: self["radius"], amount: intensity * self["amount"], threshold: self["threshold"])
    case .pixelate: .pixelate(size: Int(self["size"]), share: intensity)
    default: nil
    }
  }

  private func line(slope: Double, intercept: Double) -> ColorOperation {
    .curve(.linear(slope: 1 + intensity * (slope - 1), intercept: intensity * intercept))
  }

  private func color(_ prefix: String) -> [Double] {
    ["red", "green", "blue"].map { self["\(prefix)\($0)"] / 255 }
  }
}
