internal import CCodecs

/// The memory budget of one image, in bytes.
///
/// The image's decoders, encoders and pixel buffers charge it before they allocate. A budget is not synchronized: it
/// belongs to one image, and only one thread works on an image at a time.
package final class ImageBudget {
  // The C code keeps the address, so the struct has its own allocation, which lives as long as this object.
  let account: UnsafeMutablePointer<ccodecs_budget>

  /// Creates a budget of `limit` bytes.
  package init(limit: Int) {
    account = .allocate(capacity: 1)
    account.initialize(to: ccodecs_budget(limit: max(0, limit), used: 0, peak: 0, wanted: 0, has_machine_failed: false))
  }

  deinit { account.deallocate() }

  /// The maximum number of bytes that the image may use.
  package var limit: Int { account.pointee.limit }
  /// Raises the limit to `limit` bytes if it is lower.
  package func raiseLimit(to limit: Int) { account.pointee.limit = max(account.pointee.limit, limit) }
  /// Charges bytes that the image needs until its end.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package func charge(_ byteCount: Int) throws(CodecError) {
    if !ccodecs_budget_charge(account, byteCount) { throw CodecError(noRoomFor: byteCount, in: self) }
  }
  /// Charges bytes that the image needs during a call.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package func charge<Value>(_ byteCount: Int, during body: () -> Value) throws(CodecError) -> Value {
    try charge(byteCount)
    defer { ccodecs_budget_refund(account, byteCount) }
    return body()
  }
  /// The number of bytes in use.
  package var used: Int { account.pointee.used }
  /// Whether the system failed to provide memory or disk space.
  var hasMachineFailed: Bool { account.pointee.has_machine_failed }
  /// The limit, and what would be in use if the last refused allocation had succeeded; `nil` if none was refused.
  var exceededLimit: CodecError.Limit? {
    let wanted = account.pointee.wanted
    return wanted == 0
      ? nil : CodecError.Limit(name: "image_memory_limit", limit: UInt64(limit), value: UInt64(wanted))
  }
  /// The highest value of `used` so far.
  package var peak: Int { account.pointee.peak }
}
