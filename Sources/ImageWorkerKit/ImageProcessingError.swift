internal import ImagePipeline

/// The reason why an image was not processed.
///
/// Decide by ``reason``; messages may change.
public struct ImageProcessingError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind of an error; its names are those of the worker's errors.
  public struct Reason: Sendable, Hashable, CustomStringConvertible {
    /// The name of the reason, such as `CORRUPT_IMAGE`.
    public let name: String

    /// The name of the reason.
    public var description: String { name }

    /// A value of a field is not accepted; ``ImageProcessingError/field`` names it.
    public static let invalidField = Reason(.invalidField)
    /// This build does not support a field or its value; ``ImageProcessingError/field`` names it.
    public static let unsupportedField = Reason(.unservedField)
    /// No preset has the requested name.
    public static let unknownPreset = Reason(.unknownPreset)
    /// The image has no bytes.
    public static let emptyImage = Reason(.emptyImage)
    /// The first bytes match no known format.
    public static let unknownFormat = Reason(.unknownFormat)
    /// The format, or the variant that the file uses, is not supported by this build.
    public static let unsupportedImage = Reason(.unsupportedImage)
    /// The bytes violate their format.
    public static let corruptImage = Reason(.corruptImage)
    /// The bytes end before the image is complete.
    public static let truncatedImage = Reason(.truncatedImage)
    /// The image exceeds a limit; ``ImageProcessingError/limit`` has it.
    public static let limitExceeded = Reason(.limitExceeded)
    /// There is no memory for the image at present.
    public static let overloaded = Reason(.overloaded)
    /// The work was cancelled.
    public static let cancelled = Reason(.cancelled)
    /// A defect of this library.
    public static let internalDefect = Reason(.internalDefect)

    private init(_ code: PipelineError.Code) { name = code.rawValue }

    fileprivate init(of error: PipelineError) { self.init(error.code) }
  }

  /// A limit, and the value that exceeds it.
  public struct Limit: Sendable, Hashable {
    /// The name of the limit, such as `max_pixels`.
    public let name: String
    /// The value of the limit.
    public let limit: UInt64
    /// The value that exceeds it.
    public let value: UInt64
  }

  /// The kind of error.
  public let reason: Reason
  /// A description in one sentence, without bytes or metadata of the image.
  public let message: String
  /// The field that is the cause, such as `max_width`; `nil` if there is none.
  public let field: String?
  /// The limit that was exceeded; `nil` for other errors.
  public let limit: Limit?
  /// The minimum number of bytes that are missing from an incomplete header; `nil` if it is not known.
  public let neededByteCount: Int?

  /// The reason and the message.
  public var description: String { "\(reason): \(message)" }

  init(_ error: PipelineError) {
    reason = Reason(of: error)
    message = error.code == .cancelled ? "the work was cancelled" : error.message
    field = error.field
    limit = error.limit.map { Limit(name: $0.name, limit: $0.limit, value: $0.value) }
    neededByteCount = error.neededByteCount
  }
}

extension ImageProcessingError {
  /// Runs work of the engine and converts its errors.
  static func mapping<Value>(
    _ body: () throws(PipelineError) -> Value
  ) throws(ImageProcessingError) -> Value {
    do { return try body() } catch { throw ImageProcessingError(error) }
  }

  /// Returns the value of an outcome, or throws its error.
  static func mapped<Value>(_ outcome: Result<Value, PipelineError>) throws(ImageProcessingError) -> Value {
    switch outcome {
    case .success(let value): value
    case .failure(let error): throw ImageProcessingError(error)
    }
  }
}

extension Result where Failure == PipelineError {
  /// Creates the outcome of asynchronous work.
  init(_ body: () async throws(PipelineError) -> Success) async {
    do { self = .success(try await body()) } catch { self = .failure(error) }
  }
}
