internal import ImageKernels

/// The waves of an image's light, as text.
///
/// Source: github.com/woltapp/blurhash, Algorithm.md; the same as the Python package blurhash.
struct BlurHash {
  /// The maximum number of components across, and down.
  static let maxCount = 9

  /// The light of each level of sRGB, 0 to 1.
  private static let light: [Double] = (0...255).map { SRGB.decoded(Double($0) / 255) }
  private static let digits = Array(
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~".utf8)

  /// The mean of the light times each wave, `maxCount` to a row, for red, green and blue.
  private let waves: [[Double]]

  init(_ thumbnail: Thumbnail) {
    let count = Double(thumbnail.width * thumbnail.height)
    let cosines = thumbnail.waves(count: Self.maxCount, isCentered: false)
    waves = [Thumbnail.Channel.lightOfRed, .lightOfGreen, .lightOfBlue].map { channel in
      thumbnail.cosineSums(
        channel, cosines, across: Self.maxCount, down: Self.maxCount, light: Self.light
      ).enumerated().map { index, sum in (index == 0 ? 1 : 2) * sum / count }
    }
  }

  /// Returns the text for some of the components.
  func text(across: Int, down: Int) -> String {
    let indices = (0..<down).flatMap { row in (0..<across).map { row * Self.maxCount + $0 } }
    let maximum = indices.dropFirst().reduce(0) { maximum, index in
      max(maximum, waves.map { abs($0[index]) }.max() ?? 0)
    }
    let scale = Int(max(0, min(82, (maximum * 166 - 0.5).rounded(.down))))
    let unit = Double(scale + 1) / 166
    let mean = waves.reduce(0) { $0 << 8 | Self.level($1[0]) }
    var text = Self.digits(across - 1 + (down - 1) * 9, count: 1) + Self.digits(scale, count: 1)
    text += Self.digits(mean, count: 4)
    for index in indices.dropFirst() {
      let steps = waves.reduce(0) { $0 * 19 + Self.step($1[index] / unit) }
      text += Self.digits(steps, count: 2)
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static func step(_ value: Double) -> Int {
    let root = value < 0 ? -(-value).squareRoot() : value.squareRoot()
    return Int(max(0, min(18, (root * 9 + 9.5).rounded(.down))))
  }

  private static func level(_ light: Double) -> Int {
    Int(SRGB.encoded(max(0, min(1, light))) * 255 + 0.5)
  }

  private static func digits(_ value: Int, count: Int) -> [UInt8] {
    var (rest, text) = (value, [UInt8](repeating: digits[0], count: count))
    for index in text.indices.reversed() {
      text[index] = digits[rest % 83]
      rest /= 83
    }
    return text
  }
}
