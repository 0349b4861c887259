internal import CCodecs

/// What one image may hold, holds, and held at most, in bytes.
///
/// Decoders, encoders and pixel buffers of an image are charged here before they allocate. A budget is not
/// synchronised: it belongs to one image, which is worked on by one thread at a time.
package final class ImageBudget {
  // The C side keeps the address, so the struct lives in a block of its own for as long as this object does.
  let account: UnsafeMutablePointer<ccodecs_budget>

  /// A budget of `limit` bytes.
  package init(limit: Int) {
    account = .allocate(capacity: 1)
    account.initialize(to: ccodecs_budget(limit: max(0, limit), used: 0, peak: 0, has_machine_failed: false))
  }

  deinit { account.deallocate() }

  /// The most bytes the image may hold.
  package var limit: Int { account.pointee.limit }
  /// The bytes it holds now.
  package var used: Int { account.pointee.used }
  /// Whether memory or disk was not there for it, or failed.
  var hasMachineFailed: Bool { account.pointee.has_machine_failed }
  /// The most bytes it has held.
  package var peak: Int { account.pointee.peak }
}
