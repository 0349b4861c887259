package import ImageCodecs

/// The limits that apply to one image.
///
/// They are checked before any memory is allocated for the image.
package struct ImageLimits: Sendable, Hashable {
  /// The maximum pixel count of an image that is decoded strip by strip.
  package var maxPixels: UInt64
  /// The maximum pixel count of an image whose decoder buffers the whole bitmap (PSD, HEIC, AVIF, JPEG XL, interlaced
  /// PNG and GIF, lossless WebP, and several frames).
  package var maxBufferedPixels: UInt64
  /// The maximum number of scans of a progressive JPEG.
  ///
  /// Each scan requires a pass over the image and some KiB of memory, so a small file can cause a large amount of work.
  package var maxScans: UInt32
  /// The maximum number of frames of an animation that are composed.
  package var maxAnimationFrames: UInt32
  /// The maximum sum of the pixels of these frames, each at least the whole canvas.
  package var maxAnimationPixels: UInt64
  /// The maximum work on all results of an image, in pixels.
  ///
  /// Every pixel of a result counts once for its encoder, once for scaling, and once for each pass of a filter; padding
  /// counts once for the encoder only. Without this limit, a request could demand any number of pixels from a small
  /// image.
  package var maxWorkPixels: UInt64
  /// The maximum CPU time for decoding and all results of an image; `nil` for no limit.
  package var maxCPUTime: Duration?
  /// The maximum number of bytes that the decoder, stages and encoder may allocate at once.
  package var memory: Int
  /// The same for an image whose whole file is buffered and which is decoded as one frame (most HEIC and AVIF), if it
  /// needs more than `memory`.
  ///
  /// Nothing is decoded before the last byte has arrived, so such an image does not keep its memory while a client is
  /// slow.
  package var frameMemory: Int
  /// The directory to which a progressive JPEG's data or an image's planes are spilled when they are too large for
  /// memory.
  ///
  /// If it is `nil`, they are buffered in memory, up to `memory`.
  package var spill: SpillDirectory?

  /// Creates limits, by default those of a worker with enough memory.
  ///
  /// - `memory`: `nil` for 384 MiB.
  /// - `frameMemory`: `nil` for `memory`, or 640 MiB if that is `nil` too.
  package init(
    maxPixels: UInt64 = 500_000_000, maxBufferedPixels: UInt64 = 100_000_000, maxScans: UInt32 = 100,
    maxAnimationFrames: UInt32 = 10_000, maxAnimationPixels: UInt64 = 2_000_000_000,
    maxWorkPixels: UInt64 = 5_000_000_000, maxCPUTime: Duration? = .seconds(120), memory: Int? = nil,
    frameMemory: Int? = nil, spill: SpillDirectory? = .system
  ) {
    self.maxPixels = maxPixels
    self.maxBufferedPixels = maxBufferedPixels
    self.maxScans = maxScans
    self.maxAnimationFrames = maxAnimationFrames
    self.maxAnimationPixels = maxAnimationPixels
    self.maxWorkPixels = maxWorkPixels
    self.maxCPUTime = maxCPUTime
    self.memory = memory ?? 384 << 20
    self.frameMemory = frameMemory ?? memory ?? 640 << 20
    self.spill = spill
  }

  /// The limits that codecs enforce.
  var codec: CodecLimits {
    var codec = CodecLimits(
      maxPixels: maxPixels, maxBufferedPixels: maxBufferedPixels, maxScans: maxScans, spill: spill)
    (codec.maxFrames, codec.maxFramePixels) = (maxAnimationFrames, maxAnimationPixels)
    return codec
  }
}

/// Spill files of images that another process works on.
extension ImageLimits {
  /// The default limits in a process that cannot open files; it requests spill files through a socket.
  package static func requestingFiles(from socket: Int32) -> ImageLimits {
    ImageLimits(spill: SpillDirectory(requestingFilesFrom: socket))
  }

  /// Creates a spill file of `byteCount` bytes for another process.
  /// - Returns: A descriptor, which the caller closes; -1 if there is no spill directory or no room.
  package func makeSpillFile(byteCount: UInt64) -> Int32 { spill?.makeFile(byteCount: byteCount) ?? -1 }
}
