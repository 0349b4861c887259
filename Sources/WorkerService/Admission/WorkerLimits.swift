internal import FoundationEssentials
package import ImagePipeline

/// What the worker takes on at most.
package struct WorkerLimits: Sendable, Hashable {
  /// What one image may claim and hold.
  package var image: ImageLimits
  /// Bytes of an image, or of a chunk of one, in one message.
  package var maxMessageByteCount: Int
  /// Images that may wait for a thread or for memory.
  package var maxWaitingImages: Int
  /// Uploads in chunks that may be open at once on one batch stream.
  package var maxOpenUploads: Int
  /// Whole images that are worked on at once on one batch stream; the stream is not read on above it.
  package var maxImagesPerStream: Int
  /// How long an upload may bring no bytes once it has begun; `nil` for any time.
  package var uploadTimeout: Duration?

  package init(
    image: ImageLimits = ImageLimits(), maxMessageByteCount: Int = 64 << 20, maxWaitingImages: Int = 256,
    maxOpenUploads: Int = 64, maxImagesPerStream: Int = 8, uploadTimeout: Duration? = .seconds(30)
  ) {
    self.image = image
    self.maxMessageByteCount = maxMessageByteCount
    self.maxWaitingImages = maxWaitingImages
    self.maxOpenUploads = maxOpenUploads
    self.maxImagesPerStream = maxImagesPerStream
    self.uploadTimeout = uploadTimeout
  }

  /// - Throws: `limitExceeded` for a message that holds more of an image than one may.
  func check(message bytes: Data) throws(PipelineError) {
    guard bytes.count > maxMessageByteCount else { return }
    throw PipelineError(
      .limitExceeded,
      "a message contains \(bytes.count) bytes of an image, above max_message_bytes of \(maxMessageByteCount); "
        + "send it in chunks with BatchProcess",
      limit: .init(
        name: "max_message_bytes", limit: UInt64(maxMessageByteCount), value: UInt64(bytes.count)))
  }
}
