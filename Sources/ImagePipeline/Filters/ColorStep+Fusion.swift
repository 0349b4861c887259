internal import ImageKernels
internal import LibC

extension ColorStep {
  /// The equivalent matrix before clamping; `nil` if there is none.
  var matrix: ColorMatrix? {
    switch self {
    case .matrix(let numbers): ColorMatrix(numbers)
    case .linear(let slope, let intercept): ColorMatrix(diagonal: [slope, slope, slope], constant: intercept)
    default: nil
    }
  }

  /// Whether the step maps the value of one channel, regardless of the other channels and the position of the pixel.
  ///
  /// Every curve is monotonic, so the ends of a range map to the ends of its image.
  var isCurve: Bool {
    switch self {
    case .linear, .power, .exposure: true
    case .matrix, .threshold, .vignette: false
    }
  }

  /// Returns the value of a curve for `x`, 0 to 1, clamped to 0 to 1.
  func value(_ x: Double) -> Double {
    let value =
      switch self {
      case .linear(let slope, let intercept): slope * x + intercept
      // Source: W3C Filter Effects Module Level 1, `feFuncR`, type `gamma`.
      case .power(let exponent, let amplitude, let offset, let share):
        x + share * (amplitude * pow(x, exponent) + offset - x)
      case .exposure(let gain, let share): x + share * (SRGB.encoded(gain * SRGB.decoded(x)) - x)
      case .matrix, .threshold, .vignette: x
      }
    return min(1, max(0, value))
  }

  /// Whether the step leaves every image unchanged.
  var isIdentity: Bool {
    switch self {
    case .matrix(let numbers): ColorMatrix(numbers).isIdentity
    case .linear(let slope, let intercept): abs(slope - 1) < 1e-9 && abs(intercept) < 1e-9
    case .power(let exponent, let amplitude, let offset, _): exponent == 1 && amplitude == 1 && offset == 0
    case .exposure(let gain, _): gain == 1
    case .threshold(_, _, let share): share == 0
    case .vignette(let radius, _, let share): share == 0 || radius >= 1
    }
  }

  /// Returns the range of each channel's output, clamped to 0 to 1, for the given input ranges.
  func image(of ranges: [ClosedRange<Double>]) -> [ClosedRange<Double>] {
    switch self {
    case .matrix(let numbers):
      ColorMatrix(numbers).image(of: ranges).map { min(1, max(0, $0.lowerBound))...min(1, max(0, $0.upperBound)) }
    case .linear, .power, .exposure:
      ranges.map { range in
        let ends = [value(range.lowerBound), value(range.upperBound)]
        return min(ends[0], ends[1])...max(ends[0], ends[1])
      }
    case .threshold, .vignette: ranges.map { _ in 0...1 }
    }
  }
}

/// The transfer function of sRGB.
///
/// Source: IEC 61966-2-1.
enum SRGB {
  /// Returns the light of a value, both 0 to 1.
  static func decoded(_ x: Double) -> Double {
    x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4)
  }

  /// Returns the value for light, both 0 to 1.
  static func encoded(_ x: Double) -> Double {
    x <= 0.0031308 ? 12.92 * x : 1.055 * pow(x, 1 / 2.4) - 0.055
  }
}
