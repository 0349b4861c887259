internal import CCodecs

/// What an image's header may claim.
///
/// Checked before anything is allocated for the image.
package struct CodecLimits: Sendable, Hashable {
  /// Width times height of an image that is decoded strip by strip.
  package var maxPixels: UInt64
  /// Width times height of an image whose decoder holds the whole bitmap (PSD, HEIC, AVIF, JPEG XL, interlaced PNG and GIF,
  /// lossless WebP).
  package var maxBufferedPixels: UInt64
  /// Scans of a progressive JPEG.
  ///
  /// Each costs a pass over the image, so a small file can ask for much work.
  package var maxScans: UInt32
  /// Where a JPEG's bytes, coefficients or planes go when there are too many to be held in memory.
  ///
  /// `nil` holds them all the same.
  package var spill: SpillDirectory?

  package init(maxPixels: UInt64, maxBufferedPixels: UInt64, maxScans: UInt32, spill: SpillDirectory? = nil) {
    self.maxPixels = maxPixels
    self.maxBufferedPixels = maxBufferedPixels
    self.maxScans = maxScans
    self.spill = spill
  }

  var handle: ccodecs_limits {
    ccodecs_limits(
      max_pixels: maxPixels, max_whole_input_pixels: maxBufferedPixels, max_scans: maxScans, can_spill: spill != nil,
      spill_directory: spill?.descriptor ?? -1)
  }
}
