/// What a picture's header may claim.
///
/// Checked before anything is allocated for the picture.
package struct CodecLimits: Sendable, Hashable {
  /// Width times height of a picture that is decoded strip by strip.
  package var maxPixels: UInt64
  /// Width times height of a picture whose decoder holds the whole bitmap (PSD, HEIC, AVIF, JPEG XL, interlaced PNG and GIF,
  /// lossless WebP).
  package var maxHeldPixels: UInt64
  /// Scans of a progressive JPEG.
  ///
  /// Each costs a pass over the picture, so a small file can ask for much work.
  package var maxScans: UInt32

  package init(maxPixels: UInt64, maxHeldPixels: UInt64, maxScans: UInt32) {
    self.maxPixels = maxPixels
    self.maxHeldPixels = maxHeldPixels
    self.maxScans = maxScans
  }
}
