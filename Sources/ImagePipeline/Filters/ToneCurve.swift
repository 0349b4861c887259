internal import LibC

/// A function that maps the value of one channel, regardless of the other channels and the position of the pixel.
///
/// Every curve is monotonic, so the ends of a range map to the ends of its image.
enum ToneCurve: Sendable, Hashable {
  /// A straight line: slope * x + intercept.
  case linear(slope: Double, intercept: Double)
  /// Mixes x with amplitude * x ^ exponent + offset.
  ///
  /// Source: W3C Filter Effects Module Level 1, `feFuncR`, type `gamma`.
  case power(exponent: Double, amplitude: Double, offset: Double, share: Double)
  /// Mixes x with encoded(gain * decoded(x)).
  ///
  /// Source: IEC 61966-2-1, the transfer function of sRGB.
  case exposure(gain: Double, share: Double)

  /// Returns the value for `x`, 0 to 1, clamped to 0 to 1.
  func value(_ x: Double) -> Double { min(1, max(0, unclamped(x))) }

  private func unclamped(_ x: Double) -> Double {
    switch self {
    case .linear(let slope, let intercept): slope * x + intercept
    case .power(let exponent, let amplitude, let offset, let share):
      x + share * (amplitude * pow(x, exponent) + offset - x)
    case .exposure(let gain, let share): x + share * (Self.encoded(gain * Self.decoded(x)) - x)
    }
  }

  /// Returns the range of a channel's output for an input in `range`.
  func image(of range: ClosedRange<Double>) -> ClosedRange<Double> {
    let ends = [value(range.lowerBound), value(range.upperBound)]
    return min(ends[0], ends[1])...max(ends[0], ends[1])
  }

  /// Whether the curve changes nothing.
  var isIdentity: Bool {
    switch self {
    case .linear(let slope, let intercept): abs(slope - 1) < 1e-9 && abs(intercept) < 1e-9
    case .power(let exponent, let amplitude, let offset, _): exponent == 1 && amplitude == 1 && offset == 0
    case .exposure(let gain, _): gain == 1
    }
  }

  /// Returns the light of a value of sRGB, both 0 to 1.
  static func decoded(_ x: Double) -> Double {
    x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4)
  }

  /// Returns the value of sRGB for light, both 0 to 1.
  static func encoded(_ x: Double) -> Double {
    x <= 0.0031308 ? 12.92 * x : 1.055 * pow(x, 1 / 2.4) - 0.055
  }
}
