internal import FoundationEssentials
internal import ImagePipeline

/// The facts of an image as JSON, with the names of the contract's `ImageFacts`.
struct FactsLine: Sendable, Codable, Equatable {
  struct DominantColor: Sendable, Codable, Equatable {
    var color: String
    var share: Double
  }

  /// In Base64.
  var thumbHash: String
  var blurHash: String
  var detailedBlurHash: String
  /// As in `#7f8a6d`.
  var meanColor: String
  var dominantColors: [DominantColor]
  /// 16 hexadecimal digits, as `imagehash` prints them.
  var perceptualHash: String
  var differenceHash: String
  var isOpaque: Bool
  var isGray: Bool
  var isPhotographic: Bool

  init(_ facts: ImageFacts) {
    thumbHash = Data(facts.thumbHash).base64EncodedString()
    (blurHash, detailedBlurHash) = (facts.blurHash, facts.detailedBlurHash)
    meanColor = Self.text(facts.meanColor)
    dominantColors = facts.dominantColors.map {
      DominantColor(color: Self.text($0.color), share: ($0.share * 10_000).rounded() / 10_000)
    }
    perceptualHash = Self.digits(facts.perceptualHash, count: 16)
    differenceHash = Self.digits(facts.differenceHash, count: 16)
    (isOpaque, isGray, isPhotographic) = (facts.isOpaque, facts.isGray, facts.isPhotographic)
  }

  private static func text(_ color: Color) -> String {
    "#" + [color.red, color.green, color.blue].map { digits(UInt64($0), count: 2) }.joined()
  }

  private static func digits(_ number: UInt64, count: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: count - digits.count) + digits
  }

  /// The names and values for a person to read.
  var rows: [(name: String, value: String)] {
    [
      ("thumb hash", thumbHash), ("blur hash", blurHash), ("mean color", meanColor),
      ("colors", dominantColors.map { "\($0.color) \(Int(($0.share * 100).rounded())) %" }.joined(separator: ", ")),
      ("pHash", perceptualHash), ("dHash", differenceHash),
      (
        "looks",
        [
          isOpaque ? "opaque" : "transparent", isGray ? "gray" : "colored", isPhotographic ? "photographic" : "drawn",
        ].joined(separator: ", ")
      ),
    ]
  }
}
