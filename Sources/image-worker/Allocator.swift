internal import CMalloc

/// How the system's allocator keeps memory that was freed.
///
/// glibc raises its thresholds as large blocks come and go, until an arena keeps up to 64 MiB of free memory at its top:
/// after mixed traffic a worker stayed at 240 MiB with 5 MiB in use. Fixed thresholds cost no CPU that could be measured
/// (mixed traffic of 2,000 images, medians of three runs each). Other allocators are left as they are.
enum Allocator {
  /// Blocks from this size on are mapped from the system, and go back to it as soon as they are freed.
  ///
  /// Thresholds of 128 KiB cost 15 to 36 % of CPU on AVIF.
  private static let mappedByteCount: Int32 = 32 << 20
  /// An arena whose free end is larger gives it back.
  private static let keptByteCount: Int32 = 512 << 10
  /// Arenas beyond one for each image thread: event loops and logs share these.
  private static let sharedArenaCount = 2

  /// Sets the thresholds. Call it before the process starts threads.
  /// - Parameter threadCount: the number of images that are worked on at the same moment.
  static func limitRetention(threadCount: Int) {
    #if canImport(Glibc)
      mallopt(M_MMAP_THRESHOLD, mappedByteCount)
      mallopt(M_TRIM_THRESHOLD, keptByteCount)
      mallopt(M_ARENA_MAX, Int32(clamping: threadCount + sharedArenaCount))
    #endif
  }

  /// Returns every free page to the system. Takes some milliseconds, during which allocations wait.
  static func trim() {
    #if canImport(Glibc)
      malloc_trim(0)
    #endif
  }
}
