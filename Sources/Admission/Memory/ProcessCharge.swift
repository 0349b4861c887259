/// The memory of another process that works on an image; it counts until the value is destroyed.
///
/// It is never refused, because the number of these processes is limited. Images and messages have less room meanwhile.
package struct ProcessCharge: ~Copyable, Sendable {
  private let budget: MemoryBudget
  private var byteCount = 0

  /// Creates a charge of 0 bytes to `budget`.
  package init(budget: MemoryBudget) { self.budget = budget }

  /// Increases the charge to at least `byteCount` bytes; it never decreases the charge.
  package mutating func grow(to byteCount: Int) {
    guard byteCount > self.byteCount else { return }
    budget.charge(processByteCount: byteCount - self.byteCount)
    self.byteCount = byteCount
  }

  deinit { if byteCount > 0 { budget.charge(processByteCount: -byteCount) } }
}
