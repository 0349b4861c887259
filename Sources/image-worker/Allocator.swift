internal import CPlatform

/// How the system's allocator keeps memory that was freed.
///
/// glibc keeps up to 64 MiB of free memory at the end of each of its arenas, and `malloc_trim` returns that of the first
/// arena only: after mixed traffic an idle worker stayed at 240 MiB with 5 MiB in use. With few arenas, and a trim when it
/// is idle, it returns to 56 MiB, 38 at its start. Other allocators are left as they are.
enum Allocator {
  /// Blocks from this size on are mapped from the system, and go back to it as soon as they are freed: the most that glibc
  /// takes, and what it comes to by itself.
  ///
  /// Thresholds of 128 KiB cost 15 to 36 % of CPU on AVIF.
  private static let mappedByteCount: Int32 = 32 << 20
  /// An arena whose free end is larger gives it back at once: what glibc comes to by itself.
  ///
  /// Less than an image in one message takes, and every image pays for its pages anew: 4 MiB cost 11 % of CPU on a JPEG of
  /// 12 megapixels, 8 MiB 9 % on a PNG.
  private static let keptByteCount: Int32 = 64 << 20
  /// Cores whose threads share an arena.
  ///
  /// Most of their small blocks come from a cache of each thread's own.
  private static let coresPerArena = 4

  /// Sets the thresholds.
  ///
  /// Call it before the process starts threads.
  ///
  /// - Parameter coreCount: the number of processors, at least 1.
  static func limitRetention(coreCount: Int) {
    #if canImport(Glibc)
      mallopt(M_MMAP_THRESHOLD, mappedByteCount)
      mallopt(M_TRIM_THRESHOLD, keptByteCount)
      mallopt(M_ARENA_MAX, Int32(clamping: (coreCount + coresPerArena - 1) / coresPerArena))
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
