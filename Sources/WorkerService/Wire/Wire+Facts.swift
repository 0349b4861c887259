internal import FoundationEssentials
package import ImagePipeline
internal import SwiftProtobuf
package import WorkerProtocol

extension Imageworker_V1_ImageFacts {
  init(_ facts: ImageFacts) {
    self.init()
    thumbHash = Data(facts.thumbHash)
    blurHash = facts.blurHash
    detailedBlurHash = facts.detailedBlurHash
    meanColor = Imageworker_V1_Color(facts.meanColor)
    dominantColors = facts.dominantColors.map { color in
      .with {
        $0.color = Imageworker_V1_Color(color.color)
        $0.share = color.share
      }
    }
    perceptualHash = facts.perceptualHash
    differenceHash = facts.differenceHash
    isOpaque = facts.isOpaque
    isGray = facts.isGray
    isPhotographic = facts.isPhotographic
  }

  /// Whether the texts and numbers are those that an image can have.
  package var isPlausible: Bool {
    thumbHash.count <= ImageFacts.maxThumbHashByteCount
      && max(blurHash.utf8.count, detailedBlurHash.utf8.count) <= ImageFacts.maxBlurHashByteCount
      && dominantColors.count <= ImageFacts.maxDominantColorCount
      && dominantColors.allSatisfy { (0...1).contains($0.share) }
  }
}

extension ImageFacts {
  /// Creates the facts of a report.
  package init(_ wire: Imageworker_V1_ImageFacts) {
    self.init(
      thumbHash: Array(wire.thumbHash), blurHash: wire.blurHash, detailedBlurHash: wire.detailedBlurHash,
      meanColor: Color(wire.meanColor),
      dominantColors: wire.dominantColors.map { DominantColor(color: Color($0.color), share: $0.share) },
      perceptualHash: wire.perceptualHash, differenceHash: wire.differenceHash, isOpaque: wire.isOpaque,
      isGray: wire.isGray, isPhotographic: wire.isPhotographic)
  }
}

extension Imageworker_V1_Color {
  init(_ color: Color) {
    self.init()
    (red, green, blue) = (UInt32(color.red), UInt32(color.green), UInt32(color.blue))
  }
}

extension Color {
  fileprivate init(_ wire: Imageworker_V1_Color) {
    self.init(red: UInt8(clamping: wire.red), green: UInt8(clamping: wire.green), blue: UInt8(clamping: wire.blue))
  }
}
