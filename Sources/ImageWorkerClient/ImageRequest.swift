internal import FoundationEssentials
internal import Synchronization
internal import WorkerProtocol

/// The request for an image: its preset, fields, renditions and preview.
struct ImageRequest: Sendable {
  var preset = ""
  var fields = Fields()
  var renditions: [Rendition] = []
  var hasPreview = false
  var auxiliaryImages: [String: [UInt8]] = [:]

  /// The start of an item, without its image.
  var start: Imageworker_V1_BatchItemStart {
    var start = Imageworker_V1_BatchItemStart()
    start.preset = preset
    if fields != Fields() { start.configuration = fields }
    start.renditions = renditions.map(\.message)
    start.preview = hasPreview
    start.auxiliaryImages = auxiliaryMessages
    return start
  }

  /// The request of an image that fits in one message, without the image.
  var message: Imageworker_V1_ProcessImageRequest {
    var message = Imageworker_V1_ProcessImageRequest()
    message.preset = preset
    if fields != Fields() { message.configuration = fields }
    message.renditions = renditions.map(\.message)
    message.preview = hasPreview
    message.auxiliaryImages = auxiliaryMessages
    return message
  }

  private var auxiliaryMessages: [Imageworker_V1_AuxiliaryImage] {
    auxiliaryImages.sorted { $0.key < $1.key }.map { name, bytes in
      var message = Imageworker_V1_AuxiliaryImage()
      message.name = name
      message.image = Data(bytes)
      return message
    }
  }
}

extension ImageRequest {
  init(preset: String, fields: (inout Fields) -> Void) {
    self.preset = preset
    fields(&self.fields)
  }
}

/// The parts of one call so far.
final class Collected: Sendable {
  private let state: Mutex<(collector: ResultCollector, end: ResultCollector.End?)>

  init(_ collector: ResultCollector) { state = Mutex((collector, nil)) }

  /// `nil` until all parts have arrived.
  var end: ResultCollector.End? { state.withLock { $0.end } }

  func add(_ part: ResponsePart) {
    state.withLock { state in
      if let end = state.collector.add(part) { state.end = end }
    }
  }
}
