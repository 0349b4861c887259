internal import ImageCodecs

/// A picture's properties as a person sees it: width and height are those after orientation.
public struct ImageInfo: Sendable, Hashable {
  /// `jpeg`, `png`, `webp`, `gif`, `bmp`, `tga`, `psd`, `pnm` or `hdr`.
  public var format: String
  public var size: PixelSize
  /// The EXIF orientation as stored, 1 to 8.
  public var orientation: Int
  public var hasAlpha: Bool
  public var bitDepth: Int
  /// `gray`, `ycbcr`, `rgb`, `cmyk` or `ycck`.
  public var colorSpace: String
  /// 0 when it is not known without reading the whole file.
  public var frameCount: Int

  init(_ header: ImageHeader) {
    format = header.format.rawValue
    size = PixelSize(width: header.width, height: header.height).turned(by: header.orientation)
    orientation = header.orientation.rawValue
    hasAlpha = header.hasAlpha
    bitDepth = header.bitDepth
    colorSpace = header.colorSpace.rawValue
    frameCount = header.frameCount
  }

  init(_ plan: Plan) {
    format = plan.encoder.format.rawValue
    size = plan.outputSize
    orientation = Orientation.up.rawValue
    hasAlpha = plan.encoder.pixelFormat.hasAlpha
    bitDepth = 8
    let space: ImageHeader.ColorSpace =
      switch (plan.encoder.format, plan.encoder.pixelFormat) {
      case (_, .gray8): .gray
      case (.jpeg, _): .ycbcr
      default: .rgb
      }
    colorSpace = space.rawValue
    frameCount = 1
  }
}

/// What became of one picture.
public struct ProcessingReport: Sendable, Hashable {
  public var input: ImageInfo
  public var output: ImageInfo
  public var inputByteCount: UInt64
  public var outputByteCount: UInt64
  public var timings: StageTimings
  /// The most bytes that the picture's budget held at once.
  public var peakMemoryByteCount: UInt64
  public var warnings: [String]
}
