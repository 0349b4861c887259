internal import ImagePipeline

/// A compressed result and its report.
public struct ProcessedImage: Sendable {
  /// The file of the result.
  public let bytes: [UInt8]
  /// The work that was done, and how long it took.
  public let report: ProcessingReport
}

/// The outcome of processing one image.
public struct ProcessingReport: Sendable, Hashable, CustomStringConvertible {
  /// A condition that did not prevent the result.
  public struct Warning: Sendable, Hashable, CustomStringConvertible {
    /// The kind of warning, such as `SIZE_REDUCED`.
    public let code: String
    /// A description in one sentence.
    public let message: String
    /// The values in the message, by name.
    public let parameters: [String: String]

    /// The message.
    public var description: String { message }
  }

  private let report: ImagePipeline.ProcessingReport

  init(_ report: ImagePipeline.ProcessingReport) { self.report = report }

  /// The properties of the image.
  public var input: ImageInfo { ImageInfo(report.input) }
  /// The properties of the result.
  public var output: ImageInfo { ImageInfo(report.output) }
  /// The number of bytes of the image that were read.
  public var inputByteCount: UInt64 { report.inputByteCount }
  /// The size of the result in bytes.
  public var outputByteCount: UInt64 { report.outputByteCount }
  /// The size in bytes of the HDR gain map that the result contains, as part of ``outputByteCount``; 0 without one.
  public var gainMapByteCount: UInt64 { report.gainMapByteCount }
  /// The maximum number of bytes that were allocated for the image at once.
  public var peakMemoryByteCount: UInt64 { report.peakMemoryByteCount }
  /// The compression quality of the result, 0 to 1; `nil` for a lossless result.
  public var compressionQuality: Double? { report.compressionQuality }
  /// The similarity to the uncompressed rows, a SSIMULACRA 2 score; `nil` if no target for it was set.
  public var similarity: Double? { report.similarity }
  /// Whether the image was copied, or transformed without loss, instead of being decoded.
  public var isPassedThrough: Bool { report.isPassedThrough }
  /// The time that decoding took.
  public var decodeTime: Duration { report.timings.decode }
  /// The time that resizing took.
  public var resizeTime: Duration { report.timings.resize }
  /// The time that filters took.
  public var filterTime: Duration { report.timings.filter }
  /// The time that color conversion, orientation and compression took.
  public var encodeTime: Duration { report.timings.encode }
  /// The time from the first byte of the image to the last of its result, with all waiting.
  public var totalTime: Duration { report.timings.total }
  /// The looks of the image; `nil` unless the field `facts` is set, and for an image that was copied.
  public var facts: ImageFacts? { report.facts.map { ImageFacts($0) } }
  /// The layout of a result in the format ``OutputFormat/raw``; `nil` for other formats.
  public var tensor: TensorInfo? { report.output.tensor.map { TensorInfo($0) } }
  /// The part of the displayed image that was chosen by its pixels, as by ``Gravity/smart``; `nil` if none was.
  public var crop: PixelRectangle? { report.crop.map { PixelRectangle($0) } }
  /// The rectangles around what the field `regions` has hidden, in pixels of the displayed image.
  public var hiddenRegions: [PixelRectangle] { report.hiddenRegions.map { PixelRectangle($0) } }
  /// The faces that were found, from the eyebrows to the chin, in pixels of the displayed image, the largest first.
  ///
  /// It is empty if no field asks for faces.
  public var faces: [PixelRectangle] { report.faces.map { PixelRectangle($0) } }
  /// Conditions that did not prevent the result.
  public var warnings: [Warning] {
    report.warnings.map {
      Warning(code: $0.code?.rawValue ?? "", message: $0.message, parameters: $0.parameters)
    }
  }

  /// The formats, sizes and byte counts, such as `jpeg 4000x3000 (3100000 bytes) to webp 640x480 (42000 bytes)`.
  public var description: String {
    "\(input) (\(inputByteCount) bytes) to \(output) (\(outputByteCount) bytes)"
  }
}
