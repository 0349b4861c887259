internal import CCodecs

/// Why a decoder or an encoder gave up.
package struct CodecError: Error, Sendable, Equatable, CustomStringConvertible {
  package enum Code: Sendable, Hashable {
    /// The bytes contradict their format.
    case corrupt
    /// The input ended before the picture did.
    case truncated
    /// A valid picture of a kind that is not handled here.
    case unsupported
    /// A limit was exceeded; the message names limit and value.
    case limitExceeded
    /// The picture's memory budget, or the system's memory, is exhausted.
    case outOfMemory
    /// Calls out of order: a defect of this program.
    case misuse
  }

  package var code: Code
  /// One English clause, without bytes or metadata of the picture.
  package var message: String

  package init(code: Code, message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { "\(code): \(message)" }
}

extension CodecError {
  /// `nil` for a status that is not an error.
  init?(status: ccodecs_status, message: String) {
    guard let code = Code(status: status) else { return nil }
    self.init(code: code, message: message.isEmpty ? "\(code)" : message)
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
