internal import FoundationEssentials
package import ImagePipeline

/// What the worker takes on at most.
package struct WorkerLimits: Sendable, Hashable {
  /// What one picture may claim and hold.
  package var picture: PictureLimits
  /// Bytes of a picture, or of a chunk of one, in one message.
  package var maxMessageByteCount: Int
  /// Pictures that may wait for a thread or for memory.
  package var maxWaitingPictures: Int
  /// Uploads in chunks that may be open at once on one batch stream.
  package var maxOpenUploads: Int
  /// Whole pictures that are worked on at once on one batch stream; the stream is not read on above it.
  package var maxPicturesPerStream: Int
  /// How long an upload may bring no bytes once it has begun; `nil` for any time.
  package var uploadTimeout: Duration?

  package init(
    picture: PictureLimits = PictureLimits(), maxMessageByteCount: Int = 64 << 20, maxWaitingPictures: Int = 256,
    maxOpenUploads: Int = 64, maxPicturesPerStream: Int = 8, uploadTimeout: Duration? = .seconds(30)
  ) {
    self.picture = picture
    self.maxMessageByteCount = maxMessageByteCount
    self.maxWaitingPictures = maxWaitingPictures
    self.maxOpenUploads = maxOpenUploads
    self.maxPicturesPerStream = maxPicturesPerStream
    self.uploadTimeout = uploadTimeout
  }

  /// - Throws: `limitExceeded` for a message that holds more of a picture than one may.
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
