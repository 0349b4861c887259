internal import ImageCodecs

/// Why an image, or a request for one, was refused or given up.
package struct PipelineError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What went wrong, in the terms of whoever asked.
  package enum Code: String, Sendable, Hashable, CaseIterable {
    /// A field's value is outside its range; `field` names it.
    case invalidField = "INVALID_FIELD"
    /// A field that this version does not serve; `field` names it.
    case unservedField = "UNSERVED_FIELD"
    /// No preset has this name; `field` names where it was given.
    case unknownPreset = "UNKNOWN_PRESET"
    /// The image has no bytes.
    case emptyImage = "EMPTY_IMAGE"
    /// The first bytes are of no known format.
    case unknownFormat = "UNKNOWN_FORMAT"
    /// A known format, or a kind of it, that is not decoded here.
    case unsupportedImage = "UNSUPPORTED_IMAGE"
    /// The bytes contradict their format.
    case corruptImage = "CORRUPT_IMAGE"
    /// The bytes end before the image does.
    case truncatedImage = "TRUNCATED_IMAGE"
    /// A configured limit; `limit` names it with its value and the image's.
    case limitExceeded = "LIMIT_EXCEEDED"
    /// The worker holds as much as it may and can't take more now.
    case overloaded = "OVERLOADED"
    /// The caller sent nothing more of an upload for too long; `limit` names the time.
    case uploadStalled = "UPLOAD_STALLED"
    /// The caller cancelled or left.
    case cancelled = "CANCELLED"
    /// A defect of this program.
    case internalDefect = "INTERNAL_DEFECT"
  }

  /// A limit and the value that broke it.
  package struct Limit: Sendable, Hashable {
    /// The name of the limit, as in `max_pixels`.
    package var name: String
    /// The limit.
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
  /// One sentence without bytes or metadata of the image.
  package var message: String
  /// The configuration field, in wire spelling (`compression_quality`), that the error is about.
  package var field: String?
  /// The limit that was exceeded; `nil` for other errors.
  package var limit: Limit?
  /// Of an image whose header is not all here: how many bytes are needed at least, where its format tells.
  package var neededByteCount: Int?

  package init(_ code: Code, _ message: String, field: String? = nil, limit: Limit? = nil) {
    self.code = code
    self.message = message
    self.field = field
    self.limit = limit
  }

  package var description: String { "\(code.rawValue): \(message)" }
}

extension PipelineError {
  /// The error of a limit, with a message that names limit and value.
  package init(exceeding name: String, limit: UInt64, value: UInt64, unit: String) {
    self.init(
      .limitExceeded, "the image needs \(value) \(unit), above the limit \(name) of \(limit)",
      limit: Limit(name: name, limit: limit, value: value))
  }

  init(_ error: CodecError) {
    switch error.code {
    case .corrupt: self.init(.corruptImage, "the image is corrupt: \(error.message)")
    case .truncated: self.init(.truncatedImage, "the image is truncated: \(error.message)")
    case .unsupported: self.init(.unsupportedImage, "the image cannot be decoded by this worker: \(error.message)")
    case .limitExceeded: self.init(.limitExceeded, "the image exceeds a limit: \(error.message)")
    case .outOfMemory: self.init(.limitExceeded, "the image exceeds its memory limit: \(error.message)")
    case .outOfResources:
      self.init(.overloaded, "the host has no memory or disk space for the image: \(error.message); try again later")
    case .misuse: self.init(.internalDefect, "a codec was called incorrectly: \(error.message)")
    }
  }
}

/// Runs codec work, its errors as pipeline errors.
func withCodecErrors<Result: ~Copyable>(
  _ body: () throws(CodecError) -> Result
) throws(PipelineError) -> Result {
  do { return try body() } catch { throw PipelineError(error) }
}
