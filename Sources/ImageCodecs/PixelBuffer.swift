internal import CCodecs

/// A block of memory charged to an image's budget, aligned to 64 bytes, freed and refunded with its last reference.
///
/// A class, not a noncopyable struct, because stages hold one for each plane, and arrays hold no noncopyable values.
package final class PixelBuffer {
  /// The block's first byte; valid as long as this owner.
  package let unsafeBase: UnsafeMutableRawPointer
  /// The size of the buffer in bytes.
  package let byteCount: Int
  private let budget: ImageBudget

  /// Charges and allocates `byteCount` bytes, not zeroed.
  /// - Throws: `CodecError` with code `outOfMemory` when the budget has no room, `outOfResources` when the system has none.
  package init(byteCount: Int, budget: ImageBudget) throws(CodecError) {
    guard let base = ccodecs_allocate(budget.account, byteCount) else {
      throw CodecError(noRoomFor: byteCount, in: budget)
    }
    unsafeBase = base
    self.byteCount = byteCount
    self.budget = budget
  }

  deinit { ccodecs_free(budget.account, unsafeBase) }

  /// Lends the first `count` bytes; more than there are traps.
  package func withBytes<Failure: Error>(_ count: Int, _ body: (RawSpan) throws(Failure) -> Void) throws(Failure) {
    precondition(count >= 0 && count <= byteCount, "the buffer is smaller")
    try body(UnsafeRawBufferPointer(start: unsafeBase, count: count).bytes)
  }

  /// Writes bytes from `offset` on; more than there is room for trap.
  package func write(_ bytes: RawSpan, at offset: Int) {
    precondition(offset >= 0 && offset + bytes.byteCount <= byteCount, "the buffer is smaller")
    bytes.withUnsafeBytes { source in
      guard let first = source.baseAddress else { return }
      (unsafeBase + offset).copyMemory(from: first, byteCount: source.count)
    }
  }
}
