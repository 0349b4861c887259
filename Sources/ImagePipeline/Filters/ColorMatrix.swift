internal import LibC

/// A matrix that computes red, green and blue as weighted sums of red, green, blue and 1.
struct ColorMatrix: Sendable, Hashable {
  /// Three rows of four: weights of red, green and blue, and a constant.
  let numbers: [Double]

  init(_ numbers: [Double]) {
    precondition(numbers.count == 12)
    self.numbers = numbers
  }

  static let identity = ColorMatrix([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0])

  /// Scales each channel by its factor and adds the same constant to all.
  init(diagonal: [Double], constant: Double = 0) {
    self.init([
      diagonal[0], 0, 0, constant, 0, diagonal[1], 0, constant, 0, 0, diagonal[2], constant,
    ])
  }

  /// Returns the product that applies `first` and then this matrix, without clamping in between.
  func after(_ first: ColorMatrix) -> ColorMatrix {
    ColorMatrix(
      (0..<12).map { index in
        let (row, column) = (index / 4 * 4, index % 4)
        let sum = (0..<3).reduce(0) { $0 + numbers[row + $1] * first.numbers[$1 * 4 + column] }
        return column == 3 ? sum + numbers[row + 3] : sum
      })
  }

  /// Returns the matrix that mixes the result of this matrix into the image with a weight of `share`.
  func mixed(share: Double) -> ColorMatrix {
    ColorMatrix(zip(numbers, Self.identity.numbers).map { $1 + share * ($0 - $1) })
  }

  /// Returns the range of each channel's output for the given input ranges.
  func image(of ranges: [ClosedRange<Double>]) -> [ClosedRange<Double>] {
    (0..<3).map { row in
      var (low, high) = (numbers[4 * row + 3], numbers[4 * row + 3])
      for column in 0..<3 {
        let weight = numbers[4 * row + column]
        let ends = [weight * ranges[column].lowerBound, weight * ranges[column].upperBound]
        low += min(ends[0], ends[1])
        high += max(ends[0], ends[1])
      }
      return low...high
    }
  }

  /// Whether the matrix has no effect that is visible at 8 bits.
  var isIdentity: Bool { zip(numbers, Self.identity.numbers).allSatisfy { abs($0 - $1) < 1e-9 } }
}

extension ColorMatrix {
  /// The luminance weights of ITU-R BT.709, which Filter Effects also uses.
  static let luminance = [0.2126, 0.7152, 0.0722]

  /// Source: W3C Filter Effects Module Level 1, "grayscale", at 100 %.
  static let grayscale = ColorMatrix([luminance, luminance, luminance].flatMap { $0 + [0] })

  /// Source: W3C Filter Effects Module Level 1, "sepia", at 100 %.
  static let sepia = ColorMatrix([
    0.393, 0.769, 0.189, 0, 0.349, 0.686, 0.168, 0, 0.272, 0.534, 0.131, 0,
  ])

  /// Source: W3C Filter Effects Module Level 1, `feColorMatrix`, type `saturate`.
  static func saturation(_ amount: Double) -> ColorMatrix {
    let s = amount
    return ColorMatrix([
      0.213 + 0.787 * s, 0.715 - 0.715 * s, 0.072 - 0.072 * s, 0,
      0.213 - 0.213 * s, 0.715 + 0.285 * s, 0.072 - 0.072 * s, 0,
      0.213 - 0.213 * s, 0.715 - 0.715 * s, 0.072 + 0.928 * s, 0,
    ])
  }

  /// Source: W3C Filter Effects Module Level 1, `feColorMatrix`, type `hueRotate`.
  static func hue(degrees: Double) -> ColorMatrix {
    let (c, s) = (cos(degrees * .pi / 180), sin(degrees * .pi / 180))
    return ColorMatrix([
      0.213 + c * 0.787 - s * 0.213, 0.715 - c * 0.715 - s * 0.715, 0.072 - c * 0.072 + s * 0.928, 0,
      0.213 - c * 0.213 + s * 0.143, 0.715 + c * 0.285 + s * 0.140, 0.072 - c * 0.072 - s * 0.283, 0,
      0.213 - c * 0.213 - s * 0.787, 0.715 - c * 0.715 + s * 0.715, 0.072 + c * 0.928 + s * 0.072, 0,
    ])
  }

  /// Maps luminance to the line between two colors.
  static func duotone(dark: [Double], light: [Double]) -> ColorMatrix {
    ColorMatrix(
      (0..<3).flatMap { channel in
        luminance.map { $0 * (light[channel] - dark[channel]) } + [dark[channel]]
      })
  }
}
