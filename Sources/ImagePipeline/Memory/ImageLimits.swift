package import ImageCodecs

/// What one image may claim and hold at most.
///
/// Checked before anything is allocated for it.
package struct ImageLimits: Sendable, Hashable {
  /// Width times height of an image that is decoded strip by strip.
  package var maxPixels: UInt64
  /// Width times height of an image whose decoder holds the whole bitmap (PSD, HEIC, AVIF, JPEG XL, interlaced PNG and GIF,
  /// lossless WebP).
  package var maxBufferedPixels: UInt64
  /// Scans of a progressive JPEG.
  ///
  /// Each costs a pass over the image, so a small file can ask for much work; and some KiB of memory.
  package var maxScans: UInt32
  /// The maximum work on all results of an image, in pixels: each counts for its encoder, for scaling, and for each pass
  /// of a filter; one that only pads the image counts for its encoder alone.
  ///
  /// A small image can be asked for any number of them.
  package var maxWorkPixels: UInt64
  /// The maximum CPU time that decoding and all results of an image take; `nil` for any.
  package var maxCPUTime: Duration?
  /// Bytes that its decoder, stages and encoder may hold at once.
  package var memory: Int
  /// Where a progressive JPEG's bytes go, and an image's planes, when there are too many to be held in memory.
  ///
  /// Without it they are held, up to `memory`.
  package var spill: SpillDirectory?

  package init(
    maxPixels: UInt64 = 500_000_000, maxBufferedPixels: UInt64 = 100_000_000, maxScans: UInt32 = 100,
    maxWorkPixels: UInt64 = 5_000_000_000, maxCPUTime: Duration? = .seconds(120), memory: Int = 384 << 20,
    spill: SpillDirectory? = .system
  ) {
    self.maxPixels = maxPixels
    self.maxBufferedPixels = maxBufferedPixels
    self.maxScans = maxScans
    self.maxWorkPixels = maxWorkPixels
    self.maxCPUTime = maxCPUTime
    self.memory = memory
    self.spill = spill
  }

  var codec: CodecLimits {
    CodecLimits(maxPixels: maxPixels, maxBufferedPixels: maxBufferedPixels, maxScans: maxScans, spill: spill)
  }
}
