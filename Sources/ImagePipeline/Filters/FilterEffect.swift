internal import ImageKernels
internal import LibC

/// The operation that a filter performs.
enum FilterEffect: Sendable, Hashable {
  case color(ColorStep)
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
    if let step = colorStep { return step.isIdentity ? nil : .color(step) }
    guard let operation = areaOperation, !operation.isIdentity else { return nil }
    return .area(operation)
  }

  private var colorStep: ColorStep? {
    switch kind {
    case .grayscale: return .matrix(ColorMatrix.grayscale.mixed(share: intensity).numbers)
    case .sepia: return .matrix(ColorMatrix.sepia.mixed(share: intensity).numbers)
    case .saturation: return .matrix(ColorMatrix.saturation(self["amount"]).mixed(share: intensity).numbers)
    case .hue: return .matrix(ColorMatrix.hue(degrees: self["angle"]).mixed(share: intensity).numbers)
    // Blend mode "multiply" of Compositing and Blending Level 1, with an image of one color.
    case .tint: return .matrix(ColorMatrix(diagonal: color("")).mixed(share: intensity).numbers)
    case .duotone:
      return .matrix(ColorMatrix.duotone(dark: color("dark_"), light: color("light_")).mixed(share: intensity).numbers)
    // The table [1, 0] of "invert" in Filter Effects: 1 - x.
    case .invert: return line(slope: -1, intercept: 1)
    case .brightness: return line(slope: self["amount"], intercept: 0)
    case .contrast: return line(slope: self["amount"], intercept: 0.5 - 0.5 * self["amount"])
    case .gamma:
      return .power(
        exponent: self["exponent"], amplitude: self["amplitude"], offset: self["offset"], share: intensity)
    case .exposure: return .exposure(gain: exp2(self["stops"]), share: intensity)
    case .threshold:
      return .threshold(weights: ColorMatrix.luminance, level: self["level"], share: intensity)
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

  private func line(slope: Double, intercept: Double) -> ColorStep {
    .linear(slope: 1 + intensity * (slope - 1), intercept: intensity * intercept)
  }

  private func color(_ prefix: String) -> [Double] {
    ["red", "green", "blue"].map { self["\(prefix)\($0)"] / 255 }
  }
}
