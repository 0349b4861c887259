internal import CCodecs

/// Why a decoder or an encoder gave up.
package struct CodecError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kind of error, which callers tell apart.
  package enum Code: Sendable, Hashable {
    /// The bytes contradict their format.
    case corrupt
    /// The input ended before the image did.
    case truncated
    /// A valid image of a kind that is not handled here.
    case unsupported
    /// A limit was exceeded; the message names limit and value.
    case limitExceeded
    /// The image's memory budget is exhausted.
    case outOfMemory
    /// The machine's memory, or its disk, is exhausted, or fails.
    case outOfResources
    /// Calls out of order: a defect of this program.
    case misuse
  }

  /// The kind of error.
  package var code: Code
  /// One English clause, without bytes or metadata of the image.
  package var message: String

  package init(code: Code, message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { "\(code): \(message)" }
}

extension CodecError {
  /// `nil` for a status that is not an error.
  /// - `budget`: the image's; `nil` where nothing is allocated.
  init?(status: ccodecs_status, message: String, budget: ImageBudget?) {
    guard let code = Code(status: status) else { return nil }
    self.init(code: code, message: message.isEmpty ? "\(code)" : message, budget: budget)
  }

  private init(code: Code, message: String, budget: ImageBudget?) {
    let isResources = code == .outOfMemory && budget?.hasMachineFailed == true
    self.init(code: isResources ? .outOfResources : code, message: message)
  }

  /// There was no room for a block of `byteCount` bytes.
  init(noRoomFor byteCount: Int, in budget: ImageBudget) {
    self.init(
      code: .outOfMemory,
      message:
        "\(byteCount) bytes do not fit: \(budget.used) of \(budget.limit) bytes of the image's memory are in use",
      budget: budget)
  }
}

extension CodecError.Code {
  fileprivate init?(status: ccodecs_status) {
    switch status {
    case CCODECS_OK, CCODECS_NEEDS_INPUT, CCODECS_ROWS_READY, CCODECS_BYTES_READY, CCODECS_DONE: return nil
    case CCODECS_CORRUPT: self = .corrupt
    case CCODECS_TRUNCATED: self = .truncated
    case CCODECS_UNSUPPORTED: self = .unsupported
    case CCODECS_LIMIT: self = .limitExceeded
    case CCODECS_NO_MEMORY: self = .outOfMemory
    default: self = .misuse
    }
  }
}
