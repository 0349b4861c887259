internal import ImageCodecs

/// The reason why an image or a request for one was rejected or abandoned.
package struct PipelineError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind of error, from the point of view of the caller.
  package enum Code: String, Sendable, Hashable, CaseIterable {
    /// The value of a field is outside its range; `field` names it.
    case invalidField = "INVALID_FIELD"
    /// This version does not support the field; `field` names it.
    case unservedField = "UNSERVED_FIELD"
    /// No preset has the requested name; `field` names the field that contains it.
    case unknownPreset = "UNKNOWN_PRESET"
    /// The image has no bytes.
    case emptyImage = "EMPTY_IMAGE"
    /// The first bytes do not match any known format.
    case unknownFormat = "UNKNOWN_FORMAT"
    /// The format is known, but this worker cannot decode it or the variant that the file uses.
    case unsupportedImage = "UNSUPPORTED_IMAGE"
    /// The bytes violate their format.
    case corruptImage = "CORRUPT_IMAGE"
    /// The bytes end before the image is complete.
    case truncatedImage = "TRUNCATED_IMAGE"
    /// The image exceeds a configured limit; `limit` contains its name and value and the image's value.
    case limitExceeded = "LIMIT_EXCEEDED"
    /// The worker has no free capacity for more work at present.
    case overloaded = "OVERLOADED"
    /// The caller sent no more bytes of an upload for too long; `limit` names the timeout.
    case uploadStalled = "UPLOAD_STALLED"
    /// The caller cancelled the work or disconnected.
    case cancelled = "CANCELLED"
    /// The codec crashed on the image, in a process of its own.
    case codecCrashed = "CODEC_CRASHED"
    /// The codec was stopped because it used too much CPU time or memory or made no progress, in a process of its own.
    case codecStopped = "CODEC_STOPPED"
    /// A defect of this program.
    case internalDefect = "INTERNAL_DEFECT"
  }

  /// The message that has the field of an error.
  package enum FieldOwner: Sendable, Hashable {
    /// A configuration.
    case configuration
    /// The message that has a configuration as one of its fields, as a request or a rendition does.
    case request
    /// The message that the client sent.
    case message
  }

  /// A limit and the value that exceeds it.
  package struct Limit: Sendable, Hashable {
    /// The name of the limit, as in `max_pixels`.
    package var name: String
    /// The value of the limit.
    package var limit: UInt64
    /// The value that exceeds the limit.
    package var value: UInt64

    package init(name: String, limit: UInt64, value: UInt64) {
      self.name = name
      self.limit = limit
      self.value = value
    }
  }

  /// The kind of error.
  package var code: Code
  /// A description in one sentence, without bytes or metadata of the image.
  package var message: String
  /// The field that caused the error, as it is spelled in requests (`compression_quality`).
  package var field: String?
  /// The message that has the field.
  package var fieldOwner: FieldOwner
  /// The limit that was exceeded; `nil` for other errors.
  package var limit: Limit?
  /// The minimum number of bytes needed to complete the image's header; `nil` if the format does not indicate it.
  package var neededByteCount: Int?
  /// The time after which the caller may try again; `nil` if it is not known.
  package var retryDelay: Duration?

  package init(
    _ code: Code, _ message: String, field: String? = nil, of fieldOwner: FieldOwner = .configuration,
    limit: Limit? = nil, retryDelay: Duration? = nil
  ) {
    self.code = code
    self.message = message
    self.field = field
    self.fieldOwner = fieldOwner
    self.limit = limit
    self.retryDelay = retryDelay
  }

  /// The code and the message.
  package var description: String { "\(code.rawValue): \(message)" }
}

extension PipelineError {
  /// Creates the error for an exceeded limit, with a message that contains the limit and the value.
  package init(exceeding name: String, limit: UInt64, value: UInt64, unit: String) {
    self.init(
      .limitExceeded, "the image needs \(value) \(unit), above the limit \(name) of \(limit)",
      limit: Limit(name: name, limit: limit, value: value))
  }

  static let unfinishedHeader = PipelineError(
    .internalDefect, "an image was planned or decoded before its header was complete, or after it failed")

  init(_ error: CodecError) {
    switch error.code {
    case .corrupt: self.init(.corruptImage, "the image is corrupt: \(error.message)")
    case .truncated: self.init(.truncatedImage, "the image is truncated: \(error.message)")
    case .unsupported: self.init(.unsupportedImage, "the image cannot be decoded by this worker: \(error.message)")
    case .limitExceeded: self.init(.limitExceeded, "the image exceeds a limit: \(error.message)")
    case .outOfMemory: self.init(.limitExceeded, "the image exceeds its memory limit: \(error.message)")
    case .outOfResources:
      self.init(.overloaded, "the host has no memory or disk space for the image: \(error.message); try again later")
    case .noFrame: self.init(.invalidField, error.message, field: "frame_index")
    case .interrupted: self = .cancelled
    case .misuse: self.init(.internalDefect, "a codec was called incorrectly: \(error.message)")
    }
    limit = error.limit.map { Limit(name: $0.name, limit: $0.limit, value: $0.value) }
  }
}

/// Runs codec work and converts its errors to pipeline errors.
func withCodecErrors<Result: ~Copyable>(
  _ body: () throws(CodecError) -> Result
) throws(PipelineError) -> Result {
  do { return try body() } catch { throw PipelineError(error) }
}
