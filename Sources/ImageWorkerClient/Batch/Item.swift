internal import SwiftProtobuf
public import WorkerProtocol

/// An image of a batch.
public struct Item<Key: Sendable>: Sendable {
  /// Names the item in its result.
  ///
  /// Need not be unique.
  public var key: Key
  /// The image.
  public var image: ImageSource
  /// Replaces the preset of the batch.
  public var preset: String?
  /// Replace those of the batch.
  public var fields: Fields
  /// Several results of the image.
  ///
  /// The preset and the fields of the batch and of the item then have no meaning.
  public var renditions: [Rendition]
  /// Whether a preview is requested, too.
  public var hasPreview: Bool
  /// The files of the images that overlays name, by their names.
  public var auxiliaryImages: [String: [UInt8]] = [:]

  /// Creates an item.
  public init(
    _ key: Key, _ image: ImageSource, preset: String? = nil, renditions: [Rendition] = [], hasPreview: Bool = false,
    fields: (inout Fields) -> Void = { _ in }
  ) {
    self.key = key
    self.image = image
    self.preset = preset
    self.renditions = renditions
    self.hasPreview = hasPreview
    self.fields = Fields()
    fields(&self.fields)
  }

  /// The request, with the preset and the fields of the batch in place.
  func request(preset: String, fields: Fields) throws -> ImageRequest {
    guard renditions.isEmpty else {
      return ImageRequest(renditions: renditions, hasPreview: hasPreview, auxiliaryImages: auxiliaryImages)
    }
    var merged = fields
    if !self.fields.filters.isEmpty { merged.filters = [] }
    if !self.fields.overlays.isEmpty { merged.overlays = [] }
    let bytes: [UInt8] = try self.fields.serializedBytes()
    try merged.merge(serializedBytes: bytes)
    return ImageRequest(
      preset: self.preset ?? preset, fields: merged, renditions: [], hasPreview: hasPreview,
      auxiliaryImages: auxiliaryImages)
  }
}

/// The outcome of one item: its results, or an error.
public struct BatchResult<Key: Sendable>: Sendable {
  /// The key of the item.
  public var key: Key
  /// The result or error of each rendition by its id, which is empty for an item without renditions; or the error of
  /// the whole item: an ``ImageWorkerError``, or the error of reading the image.
  public var outcomes: Result<[String: Result<ImageResult, ImageWorkerError>], any Error>
  /// The preview, if one was requested and could be produced.
  public var preview: ImageResult?
  /// The number of times that the image was sent.
  public var attempts: Int
  /// The address of the worker that processed the item; empty if none did.
  public var worker: String

  /// The result of an item without renditions.
  /// - Throws: its error.
  public func result() throws -> ImageResult {
    guard let outcome = try outcomes.get()[""] else {
      throw ClientError("the item has renditions; read outcomes instead")
    }
    return try outcome.get()
  }
}

/// How a batch is paced.
public struct BatchOptions: Sendable, Hashable {
  /// The time for one item, from when it is sent first; `nil` for no limit.
  public var timeout: Duration? = .seconds(300)
  /// The number of streams, on each of which a worker processes several images at the same time; `nil` for one for each
  /// connection.
  ///
  /// Behind a balancer, use at least one for each worker.
  public var streams: Int?
  /// Items in flight on a stream.
  ///
  /// A worker processes 8 at the same time (`--max-images-per-stream`) and reads no further; more would only fill the
  /// buffers of proxies.
  public var window = 8
  /// Whether items that are in flight on slow workers are also sent to idle ones when no other items are left; the first
  /// result counts.
  public var isSpeculative = false

  /// Creates the default options.
  public init() {}
}
