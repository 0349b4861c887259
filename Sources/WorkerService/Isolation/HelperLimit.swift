internal import ImagePipeline

/// The limits that the system enforces on the helper of one image.
struct HelperLimit {
  /// The private memory in bytes that a helper may use before its image is admitted, and beyond what is charged
  /// afterwards: for libraries that allocate by themselves.
  private static let uncountedByteCount: UInt64 = 256 << 20
  /// The unit of the memory limit in bytes, so that it is the same for most images.
  private static let unitByteCount: UInt64 = 64 << 20

  /// The CPU time of the image in seconds; `nil` for no limit.
  let cpuSeconds: UInt64?
  /// The private memory in bytes.
  let byteCount: UInt64

  /// Creates the limits of an image that was admitted with `admitted` bytes.
  init(_ limits: ImageLimits, admitted: UInt64) {
    cpuSeconds = limits.maxCPUTime.map { UInt64(clamping: $0.components.seconds) + 1 }
    // Blocks are reused with some waste, so that twice the charged memory is still no leak.
    byteCount = ((Self.uncountedByteCount + 2 * admitted) / Self.unitByteCount + 1) * Self.unitByteCount
  }
}
