internal import ImagePipeline

/// The looks of an image: hashes to compare it with others, placeholders and colors.
///
/// Set the field `facts` to get them in ``ProcessingReport/facts``.
public struct ImageFacts: Sendable, Hashable {
  /// A color of sRGB.
  public struct RGBColor: Sendable, Hashable, CustomStringConvertible {
    /// Red, 0 to 255.
    public let red: UInt8
    /// Green, 0 to 255.
    public let green: UInt8
    /// Blue, 0 to 255.
    public let blue: UInt8

    init(_ color: ImagePipeline.Color) { (red, green, blue) = (color.red, color.green, color.blue) }

    /// As in `#a0b1c2`.
    public var description: String {
      "#"
        + [red, green, blue].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
  }

  /// A color that represents a part of the image.
  public struct DominantColor: Sendable, Hashable {
    /// The mean color of the part.
    public let color: RGBColor
    /// The share of the pixels that belong to the part, 0 to 1.
    public let share: Double
  }

  private let facts: ImagePipeline.ImageFacts

  init(_ facts: ImagePipeline.ImageFacts) { self.facts = facts }

  /// The ThumbHash, of at most 25 bytes.
  public var thumbHash: [UInt8] { facts.thumbHash }
  /// The BlurHash of 4x3 components, or 3x4 if the image is taller than wide.
  public var blurHash: String { facts.blurHash }
  /// The BlurHash of 9x9 components.
  public var detailedBlurHash: String { facts.detailedBlurHash }
  /// The mean color.
  public var meanColor: RGBColor { RGBColor(facts.meanColor) }
  /// Up to six colors that represent the image, the most frequent first.
  public var dominantColors: [DominantColor] {
    facts.dominantColors.map { DominantColor(color: RGBColor($0.color), share: $0.share) }
  }
  /// The pHash: similar images differ in few of its 64 bits.
  public var perceptualHash: UInt64 { facts.perceptualHash }
  /// The dHash: similar images differ in few of its 64 bits.
  public var differenceHash: UInt64 { facts.differenceHash }
  /// Whether no pixel is transparent.
  public var isOpaque: Bool { facts.isOpaque }
  /// Whether no visible pixel is colored.
  public var isGray: Bool { facts.isGray }
  /// Whether the image looks like a photograph.
  public var isPhotographic: Bool { facts.isPhotographic }
}
