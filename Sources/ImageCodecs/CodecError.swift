internal import CCodecs

/// An error from a decoder, encoder or rewriter.
package struct CodecError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The error codes that callers distinguish.
  package enum Code: Sendable, Hashable {
    /// The data violates its format.
    case corrupt
    /// The input ended before the image was complete.
    case truncated
    /// The image is valid but uses a feature that is not supported.
    case unsupported
    /// The image exceeds a limit; the message names the limit and the value.
    case limitExceeded
    /// The image's memory budget is exhausted.
    case outOfMemory
    /// The system ran out of memory or disk space, or a disk operation failed.
    case outOfResources
    /// The image has fewer frames than were selected.
    case noFrame
    /// The caller ended a long call.
    case interrupted
    /// The calls were made out of order or with invalid arguments: a defect in this program.
    case misuse
  }

  /// A limit and the value that exceeds it.
  package struct Limit: Sendable, Equatable {
    /// The name of the limit, as in `max_buffered_pixels`.
    package var name: String
    /// The value of the limit.
    package var limit: UInt64
    /// The value that exceeds the limit, at least; counting ends at the limit.
    package var value: UInt64

    package init(name: String, limit: UInt64, value: UInt64) {
      self.name = name
      self.limit = limit
      self.value = value
    }
  }

  /// The error code.
  package var code: Code
  /// The error message: one English clause that contains no image data or metadata.
  package var message: String
  /// The limit that the image exceeds; `nil` for other errors and for limits inside a library.
  package var limit: Limit?

  package init(code: Code, message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { "\(code): \(message)" }
}

extension CodecError {
  /// Creates an error from a C status; `nil` if the status is not an error.
  /// - `budget`: the image's budget; `nil` where nothing is allocated.
  /// - `excess`: the limit that caused `CCODECS_LIMIT`.
  init?(
    status: ccodecs_status, message: @autoclosure () -> String, budget: ImageBudget?,
    excess: ccodecs_excess = ccodecs_excess()
  ) {
    guard let code = Code(status: status) else { return nil }
    let message = message()
    self.init(code: code, message: message.isEmpty ? "\(code)" : message, budget: budget)
    if code == .limitExceeded { limit = Limit(excess) }
  }

  /// Returns the handle that a C function with this status created.
  /// - Throws: the error of the status.
  static func created(
    _ handle: OpaquePointer?, status: ccodecs_status, message: @autoclosure () -> String, budget: ImageBudget
  ) throws(CodecError) -> OpaquePointer {
    if let error = CodecError(status: status, message: message(), budget: budget) { throw error }
    guard let handle else { throw CodecError(code: .misuse, message: "a codec was not created") }
    return handle
  }

  private init(code: Code, message: String, budget: ImageBudget?) {
    let isResources = code == .outOfMemory && budget?.hasMachineFailed == true
    self.init(code: isResources ? .outOfResources : code, message: message)
    if self.code == .outOfMemory { limit = budget?.exceededLimit }
  }

  /// Creates the error for an allocation of `byteCount` bytes that failed.
  init(noRoomFor byteCount: Int, in budget: ImageBudget) {
    self.init(
      code: .outOfMemory,
      message:
        "\(byteCount) bytes do not fit: \(budget.used) of \(budget.limit) bytes of the image's memory are in use",
      budget: budget)
  }
}

extension CodecError.Limit {
  /// Creates the limit; `nil` if it has no name.
  fileprivate init?(_ excess: ccodecs_excess) {
    guard let name = excess.limit_name else { return nil }
    self.init(name: String(cString: name), limit: excess.limit, value: excess.value)
  }
}

extension CodecError.Code {
  fileprivate init?(status: ccodecs_status) {
    switch status {
    case CCODECS_OK, CCODECS_NEEDS_INPUT, CCODECS_ROWS_READY, CCODECS_BYTES_READY, CCODECS_FRAME_DONE, CCODECS_DONE:
      return nil
    case CCODECS_CORRUPT: self = .corrupt
    case CCODECS_TRUNCATED: self = .truncated
    case CCODECS_UNSUPPORTED: self = .unsupported
    case CCODECS_LIMIT: self = .limitExceeded
    case CCODECS_NO_MEMORY: self = .outOfMemory
    case CCODECS_NO_FRAME: self = .noFrame
    case CCODECS_INTERRUPTED: self = .interrupted
    default: self = .misuse
    }
  }
}
