internal import ImageKernels

/// The looks of an image: hashes to compare it with others, placeholders and colors.
package struct ImageFacts: Sendable, Hashable {
  /// A color that represents a part of the image.
  package struct DominantColor: Sendable, Hashable {
    /// The mean color of the part.
    package var color: Color
    /// The share of the pixels that belong to the part, 0 to 1.
    package var share: Double

    package init(color: Color, share: Double) {
      self.color = color
      self.share = share
    }
  }

  /// The maximum size of a ThumbHash in bytes.
  package static let maxThumbHashByteCount = 25
  /// The maximum size of a BlurHash in bytes.
  package static let maxBlurHashByteCount = 4 + 2 * BlurHash.maxCount * BlurHash.maxCount
  /// The maximum number of dominant colors.
  package static let maxDominantColorCount = 6

  /// The ThumbHash.
  package var thumbHash: [UInt8]
  /// The BlurHash of 4x3 components, or 3x4 if the image is higher than wide.
  package var blurHash: String
  /// The BlurHash of 9x9 components.
  package var detailedBlurHash: String
  /// The mean color.
  package var meanColor: Color
  /// Up to six colors that represent the image, the most frequent first.
  package var dominantColors: [DominantColor]
  /// The pHash.
  package var perceptualHash: UInt64
  /// The dHash.
  package var differenceHash: UInt64
  /// Whether no pixel is transparent.
  package var isOpaque: Bool
  /// Whether no pixel is colored.
  package var isGray: Bool
  /// Whether the image looks like a photograph.
  package var isPhotographic: Bool

  package init(
    thumbHash: [UInt8], blurHash: String, detailedBlurHash: String, meanColor: Color, dominantColors: [DominantColor],
    perceptualHash: UInt64, differenceHash: UInt64, isOpaque: Bool, isGray: Bool, isPhotographic: Bool
  ) {
    self.thumbHash = thumbHash
    self.blurHash = blurHash
    self.detailedBlurHash = detailedBlurHash
    self.meanColor = meanColor
    self.dominantColors = dominantColors
    self.perceptualHash = perceptualHash
    self.differenceHash = differenceHash
    self.isOpaque = isOpaque
    self.isGray = isGray
    self.isPhotographic = isPhotographic
  }

  /// Computes the facts of an image.
  /// - Parameters:
  ///   - thumbnail: The image, reduced to a small one.
  ///   - traits: The traits of its rows.
  init(_ thumbnail: Thumbnail, _ traits: RowTraits) {
    let waves = BlurHash(thumbnail)
    let isPortrait = thumbnail.height > thumbnail.width
    let sums = thumbnail.alphaSums
    let colors = thumbnail.dominantColors
    let total = colors.reduce(0) { $0 + $1.count }
    func mean(_ sum: UInt64) -> Int { sums[3] == 0 ? 0 : Int((sum + sums[3] / 2) / sums[3]) }
    let hashes = thumbnail.hashes
    self.init(
      thumbHash: ThumbHash(thumbnail, alphaSums: sums).bytes,
      blurHash: waves.text(across: isPortrait ? 3 : 4, down: isPortrait ? 4 : 3),
      detailedBlurHash: waves.text(across: BlurHash.maxCount, down: BlurHash.maxCount),
      meanColor: Color(red: UInt8(mean(sums[0])), green: UInt8(mean(sums[1])), blue: UInt8(mean(sums[2]))),
      dominantColors: colors.map {
        DominantColor(
          color: Color(red: $0.red, green: $0.green, blue: $0.blue), share: Double($0.count) / Double(max(1, total)))
      },
      perceptualHash: hashes.perceptual, differenceHash: hashes.difference, isOpaque: traits.isOpaque,
      isGray: traits.isGray, isPhotographic: traits.isPhotographic)
  }
}

/// Receives the facts of a result from the stage that gathers them.
final class FactsCollector {
  /// The facts; `nil` until all rows of the first frame have passed.
  var facts: ImageFacts?
}
