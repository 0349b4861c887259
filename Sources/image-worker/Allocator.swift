internal import CMalloc

/// How the system's allocator keeps memory that was freed.
///
/// glibc raises its thresholds as large blocks come and go, until each arena keeps up to 64 MiB of free memory at its end,
/// which `malloc_trim` returns of the first arena only: after mixed traffic a worker stayed at 240 MiB with 5 MiB in use.
/// With these thresholds and few arenas it returns to 56 MiB, 38 at its start, at the same CPU. Other allocators are left as
/// they are.
enum Allocator {
  /// Blocks from this size on are mapped from the system, and go back to it as soon as they are freed: the most that glibc
  /// takes.
  ///
  /// Thresholds of 128 KiB cost 15 to 36 % of CPU on AVIF.
  private static let mappedByteCount: Int32 = 32 << 20
  /// An arena whose free end is larger gives it back.
  ///
  /// More than an upload in one message and its working set take, or every image pays for its pages anew: 4 MiB cost 11 % of
  /// CPU on 12 megapixels.
  private static let keptByteCount: Int32 = 8 << 20
  /// Image threads that share an arena.
  ///
  /// Most of their small blocks come from a cache of each thread's own.
  private static let threadsPerArena = 4

  /// Sets the thresholds.
  ///
  /// Call it before the process starts threads.
  ///
  /// - Parameter threadCount: the number of images that are worked on at the same moment.
  static func limitRetention(threadCount: Int) {
    #if canImport(Glibc)
      mallopt(M_MMAP_THRESHOLD, mappedByteCount)
      mallopt(M_TRIM_THRESHOLD, keptByteCount)
      mallopt(M_ARENA_MAX, Int32(clamping: (threadCount + threadsPerArena - 1) / threadsPerArena))
    #endif
  }

  /// Returns every free page to the system.
  ///
  /// Takes some milliseconds, during which allocations wait.
  static func trim() {
    #if canImport(Glibc)
      malloc_trim(0)
    #endif
  }
}
