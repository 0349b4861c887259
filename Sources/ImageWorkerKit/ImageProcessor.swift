internal import Admission
internal import ImagePipeline
internal import Synchronization
internal import WorkThreads

/// Processes images in this process: decodes, resizes, filters and encodes them, strip by strip.
///
/// One processor serves a whole program. All of its images share its memory limit, and the images of its asynchronous
/// functions share its threads, which start with the first such call. It never holds a whole decoded image unless the
/// format requires it.
///
/// ```swift
/// let processor = ImageProcessor()
/// let thumbnail = try await processor.process(photo, as: ProcessingConfiguration(preset: "thumbnail"))
/// print(thumbnail.report.output, thumbnail.bytes.count)
/// ```
///
/// | to process | use |
/// |---|---|
/// | an image in memory, from asynchronous code | ``process(_:as:)-([UInt8],_)`` |
/// | an image that arrives in chunks, to a result that leaves in chunks | ``process(_:as:)-(Chunks,_)`` |
/// | an image in memory, on the calling thread | ``processNow(_:as:cancellation:)`` |
/// | chunks as you receive them, on the calling thread | ``begin(_:cancellation:)`` |
public final class ImageProcessor: Sendable {
  /// The limits that the images of this processor have.
  public let limits: ProcessingLimits
  let memory: MemoryBudget
  private let overlays: AuxiliaryImages
  private let threads = Mutex<ImageExecutor?>(nil)

  /// Creates a processor.
  /// - Parameters:
  ///   - limits: The limits of its images.
  ///   - overlays: The files of images, by the names with which the field `overlays` draws them on results. Each is
  ///     decoded once for each size, and the sizes that were used last are kept, in up to 8 MiB. They do not count
  ///     toward the memory limit.
  public init(limits: ProcessingLimits = ProcessingLimits(), overlays: [String: [UInt8]] = [:]) {
    self.limits = limits
    // A name stands for the same file as long as this processor exists.
    self.overlays = AuxiliaryImages(
      overlays.map { AuxiliaryImage(name: $0.key, bytes: $0.value, digest: Array($0.key.utf8)) }, cache: OverlayCache())
    memory = MemoryBudget(limit: limits.memoryByteCount, maxWaiting: limits.maxWaitingImageCount)
  }

  /// Processes an image in memory, on the threads of this processor.
  ///
  /// The call waits for a thread, and for memory while other images need it. The image and its result are the caller's
  /// and do not count toward the memory limit. A task that is cancelled ends the work within a strip of rows.
  /// - Parameters:
  ///   - image: The whole file.
  ///   - configuration: The properties of the result.
  /// - Returns: The compressed result and its report.
  /// - Throws: An error whose ``ImageProcessingError/reason`` states what is wrong with the configuration or the image,
  ///   which limit it exceeds, or that it was cancelled.
  public func process(
    _ image: [UInt8], as configuration: ProcessingConfiguration = ProcessingConfiguration()
  ) async throws(ImageProcessingError) -> ProcessedImage {
    let work = try makeWork(configuration)
    let outcome = await work.cancelledWithTask {
      await withTaskExecutorPreference(self.executor) {
        await Result { () async throws(PipelineError) in try await work.process(image) }
      }
    }
    return try ImageProcessingError.mapped(outcome)
  }

  /// Returns the result of an image that arrives in chunks, as an asynchronous sequence of chunks.
  ///
  /// The work happens while the sequence is iterated, on the threads of this processor: a slow reader slows the source
  /// down, and an abandoned iteration releases everything. The first chunk of many results leaves before the last chunk
  /// of the image has arrived.
  /// - Parameters:
  ///   - chunks: The file, in chunks of any size.
  ///   - configuration: The properties of the result.
  /// - Returns: The sequence; its iteration throws ``ImageProcessingError``, and the errors of `chunks`.
  public func process<Chunks: AsyncSequence>(
    _ chunks: Chunks, as configuration: ProcessingConfiguration = ProcessingConfiguration()
  ) -> ProcessedChunks<Chunks> where Chunks.Element: Collection<UInt8> {
    ProcessedChunks(chunks, configuration, self)
  }

  /// Processes an image in memory on the calling thread.
  ///
  /// It does not wait for memory: while other images have too much of it, it throws
  /// ``ImageProcessingError/Reason/overloaded``.
  /// - Parameters:
  ///   - image: The whole file.
  ///   - configuration: The properties of the result.
  ///   - cancellation: Ends the work within a strip of rows when another thread cancels it.
  /// - Returns: The compressed result and its report.
  /// - Throws: As ``process(_:as:)-([UInt8],_)``.
  public func processNow(
    _ image: [UInt8], as configuration: ProcessingConfiguration = ProcessingConfiguration(),
    cancellation: ProcessingCancellation = ProcessingCancellation()
  ) throws(ImageProcessingError) -> ProcessedImage {
    let work = try makeWork(configuration, cancellation.flag)
    return try ImageProcessingError.mapping { () throws(PipelineError) in try work.processNow(image) }
  }

  /// Begins to process an image whose bytes the caller pushes, on the calling thread.
  /// - Parameters:
  ///   - configuration: The properties of the result.
  ///   - cancellation: Ends the work within a strip of rows when another thread cancels it.
  /// - Returns: The processing of this image, which belongs to one task or thread at a time.
  /// - Throws: An error that names the field if the configuration is not valid.
  public func begin(
    _ configuration: ProcessingConfiguration = ProcessingConfiguration(),
    cancellation: ProcessingCancellation = ProcessingCancellation()
  ) throws(ImageProcessingError) -> ImageRun {
    ImageRun(try makeWork(configuration, cancellation.flag))
  }

  /// Returns the properties of an image from its first bytes, without decoding it.
  /// - Parameter bytes: The file, or its beginning.
  /// - Returns: The format, the size, and what else the header contains.
  /// - Throws: An error of the header. If it is incomplete, the reason is
  ///   ``ImageProcessingError/Reason/truncatedImage``, and ``ImageProcessingError/neededByteCount`` is the number of
  ///   missing bytes, if the format indicates it.
  public func inspect(_ bytes: [UInt8]) throws(ImageProcessingError) -> ImageInfo {
    let work = try makeWork(ProcessingConfiguration())
    return try ImageProcessingError.mapping { () throws(PipelineError) in ImageInfo(try work.inspect(bytes)) }
  }

  func makeWork(
    _ configuration: ProcessingConfiguration, _ cancellation: Cancellation = Cancellation()
  ) throws(ImageProcessingError) -> ImageWork {
    try configuration.validate()
    return ImageWork(
      configuration.fields, limits.image, memory, cancellation, overlays: overlays.used(by: configuration.fields))
  }

  /// The threads, which are started if they are not running.
  var executor: ImageExecutor {
    threads.withLock { threads in
      if let threads { return threads }
      let started = ImageExecutor(threadCount: limits.threadCount)
      threads = started
      return started
    }
  }
}

/// A flag that ends the work on images of which another thread has lost interest.
///
/// Asynchronous functions need none: they end when their task is cancelled.
public final class ProcessingCancellation: Sendable {
  let flag = Cancellation()

  /// Creates a flag that is not set.
  public init() {}

  /// Whether the work was cancelled.
  public var isCancelled: Bool { flag.isCancelled }

  /// Ends the work that was begun with this flag within a strip of rows, with
  /// ``ImageProcessingError/Reason/cancelled``.
  public func cancel() { flag.cancel() }
}
