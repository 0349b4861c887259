internal import FoundationEssentials
internal import ImagePipeline

/// The content of a call of `ModelInfer` except its model.
struct InferenceRequest: Sendable {
  static let maxImageCount = 1024
  /// The maximum size of the id of a call in bytes.
  static let maxIDByteCount = 1024

  /// The text that the response repeats.
  let id: String
  /// The images, in their order.
  let images: [Data]
  /// The requested outputs; the tensor if the request names none.
  let outputs: Set<InferenceOutput>

  /// Whether images that fail are reported in an output; otherwise they fail the call.
  var reportsErrors: Bool { outputs.contains(.error) }
  /// Whether the tensor is returned; otherwise only what belongs to it is.
  var returnsTensor: Bool { outputs.contains(.tensor) }
}

struct IndexedImageError: Error {
  /// The index of the image in the call.
  let index: Int
  let error: any Error
}

/// The outcome of one image of a call.
enum InferenceOutcome {
  /// - content: The part of the result that shows the image.
  /// - imageSize: The size of the image as displayed.
  case result(content: PixelRect, imageSize: PixelSize)
  case failure(any Error)

  /// The error of an image without a result.
  var error: (any Error)? { if case .failure(let error) = self { error } else { nil } }
}
