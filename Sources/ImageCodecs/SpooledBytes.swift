internal import CCodecs

/// Compressed bytes of a result that waits for its end, in memory or, as far as they are many, in a file.
///
/// Append all of them, then end them, then read them. It is a class so that it can be an element of an array.
package final class SpooledBytes {
  private let handle: OpaquePointer
  private let budget: ImageBudget
  // Keeps the directory open, because the spool uses its descriptor.
  private let spill: SpillDirectory?
  /// The number of bytes that were appended.
  package private(set) var byteCount: UInt64 = 0

  /// Creates an empty spool.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(spill: SpillDirectory?, budget: ImageBudget) throws(CodecError) {
    var limits = CodecLimits(spill: spill).handle
    guard let handle = ccodecs_spooled_bytes_create(&limits, budget.account) else {
      throw CodecError(noRoomFor: 0, in: budget)
    }
    self.handle = handle
    self.budget = budget
    self.spill = spill
  }

  deinit { ccodecs_spooled_bytes_destroy(handle) }

  /// Returns an upper bound of the bytes that `byteCount` spooled bytes charge to the budget.
  package static func estimatedByteCount(_ byteCount: UInt64, spill: SpillDirectory?) -> UInt64 {
    var limits = CodecLimits(spill: spill).handle
    return ccodecs_spooled_bytes_estimate(byteCount, &limits)
  }

  /// Appends bytes.
  /// - Throws: `outOfMemory` if the budget is exhausted, `outOfResources` if the disk is full.
  package func append(_ bytes: RawSpan) throws(CodecError) {
    let isAppended = bytes.withUnsafeBytes { buffer in
      buffer.isEmpty
        || ccodecs_spooled_bytes_append(
          handle, buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), buffer.count)
    }
    guard isAppended else { throw CodecError(noRoomFor: bytes.byteCount, in: budget) }
    byteCount += UInt64(bytes.byteCount)
  }

  /// Ends the bytes, which can then be read.
  /// - Throws: `outOfResources` if the disk is full.
  package func end() throws(CodecError) {
    if !ccodecs_spooled_bytes_end(handle) { throw CodecError(noRoomFor: 0, in: budget) }
  }

  /// Calls `body` with some bytes at `offset`, which are valid only during the call; none at the end.
  /// - Returns: The number of these bytes.
  /// - Throws: `outOfResources` if the disk fails.
  package func withBytes(at offset: UInt64, _ body: (RawSpan) -> Void) throws(CodecError) -> Int {
    var bytes: UnsafePointer<UInt8>?
    var count = 0
    guard ccodecs_spooled_bytes_read(handle, offset, &bytes, &count) else {
      throw CodecError(noRoomFor: 0, in: budget)
    }
    body(UnsafeRawBufferPointer(start: bytes, count: count).bytes)
    return count
  }
}
