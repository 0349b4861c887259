internal import CCodecs

/// A block of memory, aligned to 64 bytes and charged to an image's budget until its last reference is released.
///
/// It is a class because stages keep an array of buffers, one for each plane, and arrays cannot store noncopyable
/// values.
package final class PixelBuffer {
  /// The address of the block; valid as long as this object lives.
  package let unsafeBase: UnsafeMutableRawPointer
  /// The size of the buffer in bytes.
  package let byteCount: Int
  private let budget: ImageBudget

  /// Allocates `byteCount` uninitialized bytes and charges them to `budget`.
  /// - Throws: `outOfMemory` if the budget is exhausted, `outOfResources` if the system has no memory.
  package init(byteCount: Int, budget: ImageBudget) throws(CodecError) {
    guard let base = ccodecs_allocate(budget.account, byteCount) else {
      throw CodecError(noRoomFor: byteCount, in: budget)
    }
    unsafeBase = base
    self.byteCount = byteCount
    self.budget = budget
  }

  deinit { ccodecs_free(budget.account, unsafeBase) }

  /// Calls `body` with the first `count` bytes; traps if the buffer is smaller.
  package func withBytes<Failure: Error>(_ count: Int, _ body: (RawSpan) throws(Failure) -> Void) throws(Failure) {
    precondition(count >= 0 && count <= byteCount, "the buffer is smaller")
    try body(UnsafeRawBufferPointer(start: unsafeBase, count: count).bytes)
  }

  /// Copies `bytes` to `offset`; traps if they do not fit.
  package func write(_ bytes: RawSpan, at offset: Int) {
    precondition(offset >= 0 && offset + bytes.byteCount <= byteCount, "the buffer is smaller")
    bytes.withUnsafeBytes { source in
      guard let first = source.baseAddress else { return }
      (unsafeBase + offset).copyMemory(from: first, byteCount: source.count)
    }
  }
}
