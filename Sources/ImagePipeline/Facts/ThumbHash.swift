internal import ImageKernels

/// The waves of an image's luminance, colors and alpha, in some 25 bytes.
///
/// Source: github.com/evanw/thumbhash; the same as the Python packages thumbhash and thumbhash-python.
struct ThumbHash {
  let bytes: [UInt8]

  /// The waves of one channel, relative to the largest of them.
  private struct Waves {
    var mean: Double
    /// The other waves, 0 to 1.
    var others: [Double]
    /// The size of the largest wave.
    var scale: Double

    /// What is smaller is nothing but rounding.
    private static let minScale = 1e-9

    init(
      _ thumbnail: Thumbnail, _ channel: Thumbnail.Channel, _ cosines: Thumbnail.Waves, across: Int, down: Int,
      background: [Double]
    ) {
      let count = Double(thumbnail.width * thumbnail.height)
      let sums = thumbnail.cosineSums(
        channel, cosines, across: across, down: down, background: background)
      var values: [Double] = []
      for row in 0..<down {
        for column in 0..<across where column * down < across * (down - row) {
          values.append(sums[row * across + column] / count)
        }
      }
      mean = values.removeFirst()
      scale = values.reduce(0) { max($0, abs($1)) }
      if scale < Self.minScale {
        (scale, others) = (0, values.map { _ in 0 })
      } else {
        let unit = 0.5 / scale
        others = values.map { 0.5 + unit * $0 }
      }
    }
  }

  /// - `alphaSums`: those of the thumbnail.
  init(_ thumbnail: Thumbnail, alphaSums sums: [UInt64]) {
    let (width, height) = (thumbnail.width, thumbnail.height)
    let hasAlpha = sums[3] < 255 * UInt64(width * height)
    let background = (0..<3).map { sums[3] == 0 ? 0 : Double(sums[$0]) / Double(255 * sums[3]) }
    let limit = hasAlpha ? 5.0 : 7.0
    func count(_ side: Int) -> Int {
      max(1, Int((limit * Double(side) / Double(max(width, height))).rounded(.toNearestOrEven)))
    }
    let (across, down) = (count(width), count(height))
    let cosines = thumbnail.waves(count: 7, isCentered: true)
    func waves(_ channel: Thumbnail.Channel, _ across: Int, _ down: Int) -> Waves {
      Waves(thumbnail, channel, cosines, across: across, down: down, background: background)
    }
    let luminance = waves(.luminance, max(across, 3), max(down, 3))
    let (yellowBlue, redGreen) = (waves(.yellowBlue, 3, 3), waves(.redGreen, 3, 3))
    let alpha = hasAlpha ? waves(.alpha, 5, 5) : nil
    let isLandscape = width > height

    func round(_ value: Double) -> Int { Int(value.rounded(.toNearestOrEven)) }
    var head = round(63 * luminance.mean)
    head |= round(31.5 + 31.5 * yellowBlue.mean) << 6
    head |= round(31.5 + 31.5 * redGreen.mean) << 12
    head |= round(31 * luminance.scale) << 18
    if hasAlpha { head |= 1 << 23 }
    var rest = isLandscape ? down : across
    rest |= round(63 * yellowBlue.scale) << 3
    rest |= round(63 * redGreen.scale) << 9
    if isLandscape { rest |= 1 << 15 }
    var bytes = [head, head >> 8, head >> 16, rest, rest >> 8].map { UInt8(truncatingIfNeeded: $0) }
    if let alpha {
      let (mean, scale) = (round(15 * alpha.mean), round(15 * alpha.scale))
      bytes.append(UInt8(truncatingIfNeeded: mean | scale << 4))
    }
    let all = luminance.others + yellowBlue.others + redGreen.others + (alpha?.others ?? [])
    for (index, value) in all.enumerated() {
      let half = UInt8(truncatingIfNeeded: round(15 * value))
      if index.isMultiple(of: 2) { bytes.append(half) } else { bytes[bytes.count - 1] |= half << 4 }
    }
    self.bytes = bytes
  }
}
