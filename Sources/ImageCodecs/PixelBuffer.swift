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
  /// - Throws: `CodecError` with code `outOfMemory` when the budget or the system has no room.
  package init(byteCount: Int, budget: PictureBudget) throws(CodecError) {
    guard let base = ccodecs_allocate(budget.account, byteCount) else {
      throw CodecError(
        code: .outOfMemory,
        message: "\(byteCount) bytes do not fit beside \(budget.used) in the picture's budget of \(budget.limit) bytes")
    }
    self.base = base
    self.byteCount = byteCount
    self.budget = budget
  }

  deinit { ccodecs_free(budget.account, base) }
}
