internal import ImagePipeline

/// The properties of an image or of a result.
public struct ImageInfo: Sendable, Hashable, CustomStringConvertible {
  private let info: ImagePipeline.ImageInfo

  init(_ info: ImagePipeline.ImageInfo) { self.info = info }

  /// The name of the format: `jpeg`, `png`, `webp`, `gif`, `bmp`, `tga`, `psd`, `pnm`, `hdr`, `ico`, `tiff`, `avif`,
  /// `heic` or `jxl`.
  ///
  /// It is empty for a planned result whose format its rows decide.
  public var format: String { info.format }
  /// The width in pixels as displayed, after orientation.
  public var width: Int { info.size.width }
  /// The height in pixels as displayed, after orientation.
  public var height: Int { info.size.height }
  /// The EXIF orientation as stored, 1 to 8.
  public var orientation: Int { info.orientation }
  /// Whether the image has transparency.
  public var hasAlpha: Bool { info.hasAlpha }
  /// The number of bits per sample as stored.
  public var bitDepth: Int { info.bitDepth }
  /// The color space as stored: `gray`, `ycbcr`, `rgb`, `cmyk` or `ycck`.
  public var colorSpace: String { info.colorSpace }
  /// The colors: `srgb`, `display_p3`, `hdr` (PQ or HLG), or `other` for those of any other profile.
  public var gamut: String { info.gamut }
  /// The number of frames; 0 if only the whole file shows it.
  public var frameCount: Int { info.frameCount }
  /// The time that the animation takes once; `nil` for a still image, and if it is not known.
  public var duration: Duration? { info.duration }
  /// The number of times that the animation is played, 0 for ever; `nil` for a still image, and if it is not known.
  public var playCount: Int? { info.playCount }
  /// The HDR gain map; only of an image that ``ImageProcessor/inspect(_:)`` describes.
  ///
  /// It is `nil` without a map, and for a JPEG whose map is not in the bytes, as it follows the image.
  public var gainMap: GainMapInfo? { info.gainMap.map { GainMapInfo($0) } }

  /// The format and the size, such as `jpeg 640x480`.
  public var description: String { "\(format.isEmpty ? "auto" : format) \(width)x\(height)" }
}
