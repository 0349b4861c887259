internal import CCodecs

/// A block of memory charged to a picture's budget, aligned to 64 bytes, freed and refunded with its last reference.
///
/// A class, not a noncopyable struct, because stages hold one for each plane, and arrays hold no noncopyable values.
package final class PixelBuffer {
  /// The block's first byte; valid as long as this owner.
  package let base: UnsafeMutableRawPointer
  package let byteCount: Int
  private let budget: PictureBudget

  /// Charges and allocates `byteCount` bytes, not zeroed.
  /// - Throws: `CodecError` with code `outOfMemory` when the budget has no room, `outOfResources` when the system has none.
  package init(byteCount: Int, budget: PictureBudget) throws(CodecError) {
    guard let base = ccodecs_allocate(budget.account, byteCount) else {
      throw CodecError(noRoomFor: byteCount, in: budget)
    }
    self.base = base
    self.byteCount = byteCount
    self.budget = budget
  }

  deinit { ccodecs_free(budget.account, base) }
}
