internal import ImageCodecs

/// The file of an image that is not processed itself, but drawn on the results of others.
package struct AuxiliaryImage: Sendable {
  /// The name by which overlays refer to the image.
  package let name: String
  /// The size of the file in bytes.
  package let byteCount: Int
  /// A cryptographic digest of the file; empty if it was not computed.
  package let digest: [UInt8]
  /// Whether the file came with a request, so that its bytes are charged with it.
  package let isReceived: Bool
  private let lend: @Sendable ((RawSpan) -> Void) -> Void

  /// Creates an image whose bytes someone else keeps.
  /// - `lend`: calls its argument once, with the bytes of the file.
  package init(
    name: String, byteCount: Int, digest: [UInt8] = [], isReceived: Bool = false,
    lend: @escaping @Sendable ((RawSpan) -> Void) -> Void
  ) {
    self.name = name
    self.byteCount = byteCount
    self.digest = digest
    self.isReceived = isReceived
    self.lend = lend
  }

  /// Creates an image of the bytes of its file.
  package init(name: String, bytes: [UInt8], digest: [UInt8] = []) {
    self.init(name: name, byteCount: bytes.count, digest: digest) { body in bytes.withRawSpan(body) }
  }

  /// The maximum number of auxiliary images of a request.
  package static let maxCount = 8
  /// The maximum size of a name in bytes.
  package static let maxNameByteCount = 255

  /// Calls `body` with the bytes of the file, which are valid only during the call.
  package func withBytes<Result>(
    _ body: (RawSpan) throws(PipelineError) -> Result
  ) throws(PipelineError) -> Result {
    var result: Swift.Result<Result, PipelineError>?
    lend { bytes in
      do throws(PipelineError) { result = .success(try body(bytes)) } catch { result = .failure(error) }
    }
    guard let result else { throw PipelineError(.internalDefect, "an auxiliary image has no bytes") }
    return try result.get()
  }
}

/// The auxiliary images of an image, by their names.
package struct AuxiliaryImages: Sendable {
  private var images: [String: AuxiliaryImage] = [:]
  /// Keeps decoded overlays for other images; `nil` for none.
  package var cache: OverlayCache?

  /// Creates a collection; of several images with one name, the last one counts.
  package init(_ images: [AuxiliaryImage] = [], cache: OverlayCache? = nil) {
    for image in images { self.images[image.name] = image }
    self.cache = cache
  }

  /// Whether there are none.
  package var isEmpty: Bool { images.isEmpty }
  /// The images, sorted by name.
  package var all: [AuxiliaryImage] { images.values.sorted { $0.name < $1.name } }
  /// The total size of their files in bytes.
  package var byteCount: Int { images.values.reduce(0) { $0 + $1.byteCount } }
  /// The total size of the files that came with a request.
  package var receivedByteCount: Int { images.values.reduce(0) { $0 + ($1.isReceived ? $1.byteCount : 0) } }

  /// The image with a name; `nil` if there is none.
  package subscript(name: String) -> AuxiliaryImage? { images[name] }

  /// Adds an image, which replaces one of the same name.
  package mutating func add(_ image: AuxiliaryImage) { images[image.name] = image }

  /// Returns the images that the overlays of a configuration name.
  package func used(by configuration: ProcessingConfiguration) -> AuxiliaryImages {
    AuxiliaryImages((configuration.overlays ?? []).compactMap { images[$0.image] }, cache: cache)
  }

  /// Returns these images and others, which replace those of the same name.
  package func adding(_ others: AuxiliaryImages) -> AuxiliaryImages {
    AuxiliaryImages(Array(images.values) + others.all, cache: cache ?? others.cache)
  }
}
