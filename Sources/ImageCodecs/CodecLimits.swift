/// What a picture's header may claim. Checked before anything is allocated for the picture.
public struct CodecLimits: Sendable, Hashable {
  /// Width times height of a picture that is decoded strip by strip.
  public var maxPixels: UInt64
  /// Width times height of a picture whose decoder holds the whole bitmap (GIF, BMP, TGA, PSD, PNM, HDR, interlaced
  /// PNG, lossless WebP).
  public var maxHeldPixels: UInt64
  /// Scans of a progressive JPEG. Each costs a pass over the picture, so a small file can ask for much work.
  public var maxScans: UInt32

  public init(maxPixels: UInt64, maxHeldPixels: UInt64, maxScans: UInt32) {
    self.maxPixels = maxPixels
    self.maxHeldPixels = maxHeldPixels
    self.maxScans = maxScans
  }
}
