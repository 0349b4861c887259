/// A right that ends when the object is destroyed, such as a charge of memory.
package final class Claim: Sendable {
  private let end: @Sendable () -> Void

  /// Creates a claim.
  ///
  /// - `end`: called once, on any thread.
  package init(end: @escaping @Sendable () -> Void) { self.end = end }

  deinit { end() }
}
