internal import ImagePipeline
internal import LibC

/// The limits of an ``ImageProcessor``.
///
/// They are checked before memory is allocated, so that no image can exceed them, however it is made.
public struct ProcessingLimits: Sendable, Hashable {
  /// The maximum memory in bytes that all images of the processor have together.
  ///
  /// Images wait for it in order of arrival. It counts the decoders, stages and encoders, and what is buffered of images
  /// that arrive in chunks. The bytes that callers supply and receive are theirs.
  ///
  /// Default: 768 MiB.
  public var memoryByteCount: Int = 768 << 20
  /// The maximum number of images that wait for memory; further ones fail with
  /// ``ImageProcessingError/Reason/overloaded``.
  ///
  /// Default: 256.
  public var maxWaitingImageCount: Int = 256
  /// The number of images that asynchronous functions work on at the same time, each on a thread of its own.
  ///
  /// Default: the number of processors.
  public var threadCount: Int = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
  /// The maximum memory in bytes of one image; `nil` for 384 MiB, or 640 MiB for HEIC and AVIF, as far as
  /// ``memoryByteCount`` allows.
  ///
  /// Default: `nil`.
  public var imageMemoryByteCount: Int?
  /// The maximum number of pixels of an image that is decoded strip by strip.
  ///
  /// Default: 500 million.
  public var maxPixels: UInt64 = ImageLimits.standard.maxPixels
  /// The maximum number of pixels of an image whose decoder needs the whole bitmap.
  ///
  /// Default: 100 million.
  public var maxBufferedPixels: UInt64 = ImageLimits.standard.maxBufferedPixels
  /// The maximum CPU time of one image; `nil` for no limit.
  ///
  /// Default: 120 seconds.
  public var maxCPUTime: Duration? = ImageLimits.standard.maxCPUTime

  /// Creates the default limits.
  public init() {}

  var image: ImageLimits {
    let standard = ImageLimits.standard
    return ImageLimits(
      maxPixels: maxPixels, maxBufferedPixels: maxBufferedPixels, maxCPUTime: maxCPUTime,
      memory: imageMemoryByteCount ?? min(standard.memory, memoryByteCount),
      frameMemory: imageMemoryByteCount ?? min(standard.frameMemory, memoryByteCount))
  }
}

extension ImageLimits {
  fileprivate static let standard = ImageLimits()
}
