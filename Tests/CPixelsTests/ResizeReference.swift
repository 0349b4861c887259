import CPixels

/// The geometry documented in the header, implemented as plainly as possible and in double precision.
struct ResizeReference {
  let test: ResizeCase

  init(_ test: ResizeCase) { self.test = test }

  func resize(_ source: [Double]) -> [Double] {
    let (width, height) = test.source
    let columns = (0..<test.destination.width).map { weights($0, width, test.destination.width) }
    let rows = (0..<test.destination.height).map { weights($0, height, test.destination.height) }
    let channels = test.channels
    var middle: [Double] = []
    for y in 0..<height {
      for taps in columns {
        for channel in 0..<channels {
          middle.append(taps.reduce(0) { $0 + $1.weight * source[(y * width + $1.index) * channels + channel] })
        }
      }
    }
    let rowCount = test.destinationRowCount
    return rows.flatMap { taps in
      (0..<rowCount).map { x in taps.reduce(0) { $0 + $1.weight * middle[$1.index * rowCount + x] } }
    }
  }

  private func weights(_ d: Int, _ source: Int, _ destination: Int) -> [(index: Int, weight: Double)] {
    let ratio = test.ratio(source, destination)
    if test.kernel == CPIXELS_KERNEL_DOUBLED_LANCZOS3 { return doubledWeights(d, source, ratio) }
    if ratio == 1, test.offset == 0, source == destination, test.emphasis == 0 { return [(d, 1)] }
    let stretch = max(1, ratio)
    let center = (Double(d) + 0.5) * ratio + test.offset
    let reach = Int((3 * stretch).rounded(.up)) + 1
    let all = (Int(center) - reach...Int(center) + reach).map { s in
      (index: s, weight: kernel((Double(s) + 0.5 - center) / stretch))
    }
    let taps = test.light == nil ? all : all.filter { (0..<source).contains($0.index) }
    let sum = taps.reduce(0) { $0 + $1.weight }
    return taps.filter { $0.weight != 0 }.flatMap { s, weight in
      emphasized(s).map { (min(source - 1, max(0, $0.index)), $0.weight * weight / sum) }
    }
  }

  /// Returns the weights of a sample sharpened against its neighbors.
  private func emphasized(_ s: Int) -> [(index: Int, weight: Double)] {
    if test.emphasis == 0 { return [(s, 1)] }
    return [(s - 1, -test.emphasis), (s, 1 + 2 * test.emphasis), (s + 1, -test.emphasis)]
  }

  /// Returns weights over samples doubled in number, each 3/4 of one sample and 1/4 of the next nearest.
  private func doubledWeights(_ d: Int, _ source: Int, _ ratio: Double) -> [(index: Int, weight: Double)] {
    let stretch = max(1, 2 * ratio)
    let center = 2 * ((Double(d) + 0.5) * ratio + test.offset)
    let reach = Int((3 * stretch).rounded(.up)) + 1
    let taps = (Int(center) - reach...Int(center) + reach).map { s in
      (index: min(2 * source - 1, max(0, s)), weight: kernel((Double(s) + 0.5 - center) / stretch))
    }
    let sum = taps.reduce(0) { $0 + $1.weight }
    return taps.filter { $0.weight != 0 }.flatMap { index, weight in
      let (own, beside) = (index / 2, index % 2 == 0 ? index / 2 - 1 : index / 2 + 1)
      return [(own, 0.75 * weight / sum), (min(source - 1, max(0, beside)), 0.25 * weight / sum)]
    }
  }

  func kernel(_ x: Double) -> Double {
    let x = abs(x)
    if test.kernel == CPIXELS_KERNEL_TRIANGLE { return max(0, 1 - x) }
    if test.kernel == CPIXELS_KERNEL_BOX || test.kernel == CPIXELS_KERNEL_MEAN { return x <= 0.5 + 1e-9 ? 1 : 0 }
    if test.kernel == CPIXELS_KERNEL_CUBIC { return cubic(x, b: 0, c: 0.5) }
    if test.kernel == CPIXELS_KERNEL_MITCHELL { return cubic(x, b: 1.0 / 3, c: 1.0 / 3) }
    if test.kernel == CPIXELS_KERNEL_LANCZOS2 {
      if x == 0 { return 1 }
      return x < 2 ? 2 * sine(.pi * x) * sine(.pi * x / 2) / (.pi * .pi * x * x) : 0
    }
    if x == 0 { return 1 }
    if x >= 3 { return 0 }
    let a = Double.pi * x
    return 3 * sine(a) * sine(a / 3) / (a * a)
  }

  /// Returns a cubic of Mitchell and Netravali.
  private func cubic(_ x: Double, b: Double, c: Double) -> Double {
    if x < 1 { return ((12 - 9 * b - 6 * c) * x * x * x + (-18 + 12 * b + 6 * c) * x * x + 6 - 2 * b) / 6 }
    if x >= 2 { return 0 }
    return ((-b - 6 * c) * x * x * x + (6 * b + 30 * c) * x * x + (-12 * b - 48 * c) * x + 8 * b + 24 * c) / 6
  }

  /// Returns the sine from its series, so that the reference shares no code with the tested function; arguments are
  /// below 10.
  private func sine(_ x: Double) -> Double {
    var (term, sum, n) = (x, x, 1.0)
    while abs(term) > 1e-18 {
      term *= -x * x / ((n + 1) * (n + 2))
      sum += term
      n += 2
    }
    return sum
  }
}
