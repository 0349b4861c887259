public import ImagePipeline

/// What the worker takes on at most.
public struct WorkerLimits: Sendable, Hashable {
  /// What one picture may claim and hold.
  public var picture: PictureLimits
  /// Pictures that may wait for memory.
  public var maxWaitingPictures: Int
  /// Uploads in chunks that may be open at once on one batch stream.
  public var maxOpenUploads: Int
  /// Whole pictures that are worked on at once on one batch stream; the stream is not read on above it.
  public var maxPicturesPerStream: Int

  public init(
    picture: PictureLimits = PictureLimits(), maxWaitingPictures: Int = 256,
    maxOpenUploads: Int = 64, maxPicturesPerStream: Int = 8
  ) {
    self.picture = picture
    self.maxWaitingPictures = maxWaitingPictures
    self.maxOpenUploads = maxOpenUploads
    self.maxPicturesPerStream = maxPicturesPerStream
  }
}
