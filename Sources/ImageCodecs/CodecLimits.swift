internal import CCodecs

/// Limits on what an image's header may declare.
///
/// They are checked before any memory is allocated for the image.
package struct CodecLimits: Sendable, Hashable {
  /// The maximum width times height of an image that is decoded strip by strip.
  package var maxPixels: UInt64
  /// The maximum width times height of an image whose decoder buffers the whole bitmap.
  ///
  /// This applies to PSD, HEIC, AVIF, JPEG XL, interlaced PNG and GIF, and lossless WebP, and several frames.
  package var maxBufferedPixels: UInt64
  /// The maximum number of scans in a progressive JPEG.
  ///
  /// Each scan costs a pass over the image, so a small file can cause a lot of work.
  package var maxScans: UInt32
  /// The maximum number of frames of an animation that are composed; 0 for no limit.
  package var maxFrames: UInt32 = 0
  /// The maximum sum of the pixels of these frames, each at least the whole canvas; 0 for no limit.
  package var maxFramePixels: UInt64 = 0
  /// The directory to which a JPEG's data, coefficients or planes are spilled when they are too large for memory.
  ///
  /// If it is `nil`, they stay in memory.
  package var spill: SpillDirectory?

  /// Whether decoders keep EXIF, XMP and IPTC.
  ///
  /// A WebP with XMP, which follows the image, and an animated WebP are then buffered.
  package var keepsMetadata = false

  /// Whether decoders of HEIC and AVIF keep the gain map of the image.
  package var keepsGainMap = false
  /// Whether the image is a gain map, whose rows are gray if it has no chroma.
  package var isGainMap = false

  package init(maxPixels: UInt64, maxBufferedPixels: UInt64, maxScans: UInt32, spill: SpillDirectory? = nil) {
    self.maxPixels = maxPixels
    self.maxBufferedPixels = maxBufferedPixels
    self.maxScans = maxScans
    self.spill = spill
  }

  var handle: ccodecs_limits {
    ccodecs_limits(
      max_pixels: maxPixels, max_whole_input_pixels: maxBufferedPixels, max_scans: maxScans, max_frames: maxFrames,
      max_frame_pixels: maxFramePixels, can_spill: spill != nil,
      spill_directory: spill?.descriptor ?? -1, spill_is_socket: spill?.isSocket ?? false,
      keeps_metadata: keepsMetadata, keeps_gain_map: keepsGainMap, is_gain_map: isGainMap)
  }

  /// Limits on nothing, with a directory for spooled data.
  init(spill: SpillDirectory?) { self.init(maxPixels: 0, maxBufferedPixels: 0, maxScans: 0, spill: spill) }
}
