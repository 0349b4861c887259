internal import FoundationEssentials
public import ImagePipeline

/// What the worker takes on at most.
public struct WorkerLimits: Sendable, Hashable {
  /// What one picture may claim and hold.
  public var picture: PictureLimits
  /// Bytes of a picture, or of a chunk of one, in one message.
  public var maxMessageByteCount: Int
  /// Pictures that may wait for memory.
  public var maxWaitingPictures: Int
  /// Uploads in chunks that may be open at once on one batch stream.
  public var maxOpenUploads: Int
  /// Whole pictures that are worked on at once on one batch stream; the stream is not read on above it.
  public var maxPicturesPerStream: Int

  public init(
    picture: PictureLimits = PictureLimits(), maxMessageByteCount: Int = 64 << 20, maxWaitingPictures: Int = 256,
    maxOpenUploads: Int = 64, maxPicturesPerStream: Int = 8
  ) {
    self.picture = picture
    self.maxMessageByteCount = maxMessageByteCount
    self.maxWaitingPictures = maxWaitingPictures
    self.maxOpenUploads = maxOpenUploads
    self.maxPicturesPerStream = maxPicturesPerStream
  }

  /// - Throws: `limitExceeded` for a message that holds more of a picture than one may.
  func check(message bytes: Data) throws(PipelineError) {
    guard bytes.count > maxMessageByteCount else { return }
    throw PipelineError(
      .limitExceeded,
      "a message holds \(bytes.count) bytes of a picture, above the limit max_message_bytes of \(maxMessageByteCount); "
        + "send it in chunks with BatchProcess",
      limit: .init(
        name: "max_message_bytes", limit: UInt64(maxMessageByteCount), value: UInt64(bytes.count)))
  }
}
