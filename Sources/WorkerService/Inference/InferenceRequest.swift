internal import FoundationEssentials

/// The content of a call of `ModelInfer` except its model.
struct InferenceRequest: Sendable {
  static let maxImageCount = 1024
  /// The maximum size of the id of a call in bytes.
  static let maxIDByteCount = 1024

  /// The text that the response repeats.
  let id: String
  /// The images, in their order.
  let images: [Data]
  /// Whether images that fail are reported in an output; otherwise they fail the call.
  let reportsErrors: Bool
  /// Whether the tensor is returned; otherwise only the errors are.
  let returnsTensor: Bool
}

struct IndexedImageError: Error {
  /// The index of the image in the call.
  let index: Int
  let error: any Error
}
