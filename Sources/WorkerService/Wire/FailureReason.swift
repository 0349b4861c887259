internal import GRPCCore
internal import ImagePipeline

/// Why there is no result, as metrics name it: of few possible values.
struct FailureReason: Equatable {
  let name: String
  /// Whether the image was refused before any of it was decoded.
  let isRefusal: Bool

  static let cancelled = FailureReason(name: "cancelled", isRefusal: false)
}

extension FailureReason {
  init(_ error: any Error) {
    switch error {
    case let error as PipelineError: self.init(error.code)
    case let error as RenditionError: self.init(error.error)
    case let error as IndexedImageError: self.init(error.error)
    case CallerError.notAllowed: self.init(name: "permission_denied", isRefusal: true)
    case CallerError.quotaExceeded: self.init(name: "quota_exceeded", isRefusal: true)
    case is DrainError: self.init(name: "draining", isRefusal: true)
    case is CancellationError: self = .cancelled
    // What the transport throws when it can't write: nobody is there any more.
    case is RPCError: self = .cancelled
    default: self.init(name: "internal_defect", isRefusal: false)
    }
  }

  private init(_ code: PipelineError.Code) {
    let isRefusal =
      switch code {
      case .invalidField, .unservedField, .unknownPreset, .emptyImage, .unknownFormat, .unsupportedImage,
        .limitExceeded, .overloaded:
        true
      case .corruptImage, .truncatedImage, .uploadStalled, .cancelled, .codecCrashed, .codecStopped,
        .internalDefect:
        false
      }
    self.init(name: code.rawValue.lowercased(), isRefusal: isRefusal)
  }
}
