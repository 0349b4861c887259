package import ImagePipeline

/// The limits of a worker's load.
package struct WorkerLimits: Sendable, Hashable {
  /// The limits of one image.
  package var image = ImageLimits()
  /// The maximum size of an image, or of a chunk of one, in one message, in bytes.
  package var maxMessageByteCount = 64 << 20
  /// The maximum number of images that wait for a thread or for memory.
  package var maxWaitingImages = 256
  /// The maximum estimated time that an image waits for a thread; `nil` for no limit.
  package var maxQueueTime: Duration? = .seconds(30)
  /// The maximum number of open chunked uploads on one batch stream.
  package var maxOpenUploads = 64
  /// The maximum number of whole images processed at once on one batch stream; reading the stream pauses at the limit.
  package var maxImagesPerStream = 8
  /// The maximum time that a started upload may send no bytes; `nil` for no limit.
  package var uploadTimeout: Duration? = .seconds(30)
  /// The number of bytes that make up for a second in which an upload sends none; 0 if any byte makes up for all.
  package var minBytesPerSecond = 4096
  /// The time for which a client must have sent nothing before a drain ends its batch stream.
  package var drainQuietTime = Duration.milliseconds(200)

  /// The worker's defaults.
  package static let defaults = WorkerLimits()

  /// Checks the size of the images, or of the chunk, in one message.
  /// - Throws: `limitExceeded` if it exceeds `maxMessageByteCount`.
  func check(messageByteCount: Int) throws(PipelineError) {
    guard messageByteCount > maxMessageByteCount else { return }
    throw PipelineError(
      .limitExceeded,
      "a message contains \(messageByteCount) bytes of an image, above max_message_bytes of \(maxMessageByteCount); "
        + "send it in chunks with BatchProcess",
      limit: .init(
        name: "max_message_bytes", limit: UInt64(maxMessageByteCount), value: UInt64(messageByteCount)))
  }
}
