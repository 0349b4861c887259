internal import ImageCodecs
internal import ImagePipeline

/// The processing of one image whose bytes the caller pushes.
///
/// Push the bytes as they arrive, write what each call returns, and finish after the last byte:
///
/// ```swift
/// let run = try processor.begin(configuration)
/// while let chunk = try file.read() { try out.write(run.push(chunk)) }
/// let end = try run.finish()
/// try out.write(end.bytes)
/// print(end.report)
/// ```
///
/// The work happens on the calling thread. After an error, every call throws it again. A run that is released ends the
/// work and returns its memory.
public final class ImageRun {
  private let work: ImageWork

  init(_ work: ImageWork) { self.work = work }

  /// The properties of the image; `nil` until its header is complete.
  public var input: ImageInfo? { work.plan.map { ImageInfo($0.input) } }

  /// The properties of the result; `nil` until the header of the image is complete.
  ///
  /// The format is empty if the rows of the image decide it.
  public var output: ImageInfo? { work.plan.map { ImageInfo($0.output) } }

  /// Whether the result is complete; bytes that follow are ignored.
  public var isComplete: Bool { work.report != nil }

  /// Processes the next bytes of the image.
  ///
  /// - Parameter bytes: The next bytes, in chunks of any size.
  /// - Returns: The bytes of the result that they complete, which may be none.
  /// - Throws: The errors of the image, and ``ImageProcessingError/Reason/overloaded`` if there is no memory for it now.
  public func push(_ bytes: [UInt8]) throws(ImageProcessingError) -> [UInt8] {
    var output: [UInt8] = []
    try push(bytes.span.bytes) { output.append($0) }
    return output
  }

  /// Processes the next bytes of the image, without copying them or the result.
  ///
  /// - Parameters:
  ///   - bytes: The next bytes, in chunks of any size.
  ///   - output: Called with bytes of the result, which are valid only during the call.
  /// - Throws: As ``push(_:)``.
  public func push(_ bytes: RawSpan, output: (RawSpan) -> Void) throws(ImageProcessingError) {
    do throws(PipelineError) { try work.push(bytes, isLast: false, output: output) } catch {
      throw ImageProcessingError(error)
    }
  }

  /// Ends the image after its last byte.
  /// - Returns: The last bytes of the result, and its report.
  /// - Throws: As ``push(_:)``; ``ImageProcessingError/Reason/truncatedImage`` if bytes are missing.
  public func finish() throws(ImageProcessingError) -> ProcessedImage {
    do throws(PipelineError) { return try work.finish(RawSpan()) } catch { throw ImageProcessingError(error) }
  }
}
