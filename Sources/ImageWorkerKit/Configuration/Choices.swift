internal import ImagePipeline

/// The file format of a result.
public struct OutputFormat: Sendable, Hashable, CustomStringConvertible {
  let choice: ImagePipeline.OutputFormat

  init(_ choice: ImagePipeline.OutputFormat) { self.choice = choice }

  /// The name, as in `webp`.
  public var description: String { choice.rawValue }

  /// The format of the image if it can be encoded; otherwise PNG with alpha, and JPEG without.
  public static let original = OutputFormat(.original)
  /// JPEG.
  public static let jpeg = OutputFormat(.jpeg)
  /// PNG.
  public static let png = OutputFormat(.png)
  /// WebP.
  public static let webp = OutputFormat(.webp)
  /// GIF.
  public static let gif = OutputFormat(.gif)
  /// AVIF, with the trait HEIF.
  public static let avif = OutputFormat(.avif)
  /// JPEG XL, with the trait JXL.
  public static let jxl = OutputFormat(.jxl)
  /// The elements of an array for a model, without a header, as the fields of `tensor` describe it.
  public static let raw = OutputFormat(.raw)
  /// The smallest of the formats that the field `accept` lists.
  public static let auto = OutputFormat(.auto)
}

/// The way in which an image is resized to its bounds.
public struct ResizeMode: Sendable, Hashable, CustomStringConvertible {
  let choice: ImagePipeline.ResizeMode

  init(_ choice: ImagePipeline.ResizeMode) { self.choice = choice }

  /// The name, as in `fit`.
  public var description: String { choice.rawValue }

  /// Keep the aspect ratio; neither side exceeds its bound.
  public static let fit = ResizeMode(.fit)
  /// Keep the aspect ratio; both sides reach their bounds, and the excess is cropped.
  public static let fill = ResizeMode(.fill)
  /// Scale to exactly the bounds.
  public static let stretch = ResizeMode(.stretch)
}

/// A side or corner of the displayed image, or its center.
public struct Gravity: Sendable, Hashable, CustomStringConvertible {
  let choice: ImagePipeline.Gravity

  init(_ choice: ImagePipeline.Gravity) { self.choice = choice }

  /// The name, as in `north_east`.
  public var description: String { choice.rawValue }

  /// The center.
  public static let center = Gravity(.center)
  /// The top.
  public static let north = Gravity(.north)
  /// The upper right corner.
  public static let northEast = Gravity(.northEast)
  /// The right side.
  public static let east = Gravity(.east)
  /// The lower right corner.
  public static let southEast = Gravity(.southEast)
  /// The bottom.
  public static let south = Gravity(.south)
  /// The lower left corner.
  public static let southWest = Gravity(.southWest)
  /// The left side.
  public static let west = Gravity(.west)
  /// The upper left corner.
  public static let northWest = Gravity(.northWest)
  /// The part that attracts attention.
  public static let smart = Gravity(.smart)
  /// The faces that ``FaceDetector`` finds; as ``smart`` if there is none.
  public static let faces = Gravity(.faces)
}

/// The metadata that a result keeps.
public struct MetadataPolicy: Sendable, Hashable, CustomStringConvertible {
  let choice: ImagePipeline.MetadataPolicy

  init(_ choice: ImagePipeline.MetadataPolicy) { self.choice = choice }

  /// The name, as in `keep_copyright`.
  public var description: String { choice.rawValue }

  /// Keep no metadata.
  public static let strip = MetadataPolicy(.strip)
  /// Keep artist and copyright.
  public static let keepCopyright = MetadataPolicy(.keepCopyright)
  /// Keep EXIF, XMP and IPTC, without the position and serial numbers.
  public static let keepAll = MetadataPolicy(.keepAll)
  /// Keep the parts that other fields name, such as `keep_exif`.
  public static let selected = MetadataPolicy(.selected)
}
