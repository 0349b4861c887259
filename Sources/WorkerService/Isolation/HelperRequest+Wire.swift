internal import Fields
internal import ImagePipeline
internal import ProtobufWire

/// Requests as they are sent to a helper of the same program.
extension HelperRequest {
  /// The kinds of requests; test requests are valid in test mode only.
  private enum Kind: UInt64 {
    case readHeader = 1, plan, planPreview, start, advance, push, proceed, abandon
  }

  private var kind: Kind {
    switch self {
    case .readHeader: .readHeader
    case .plan: .plan
    case .planPreview: .planPreview
    case .start: .start
    case .advance: .advance
    case .push: .push
    case .proceed: .proceed
    case .abandon: .abandon
    }
  }

  /// - `work`: the number of the image.
  /// - `encode`: returns the canonical bytes of a configuration.
  func bytes(
    work: UInt32, encode: (ProcessingConfiguration) -> [UInt8] = { $0.fieldValue.canonicalBytes }
  ) -> [UInt8] {
    var writer = WireWriter()
    writer.varint(1, kind.rawValue)
    writer.varint(2, UInt64(work))
    switch self {
    case .readHeader(let byteCount, let isLast, let start, let planning):
      writer.varint(3, UInt64(byteCount))
      writer.varint(4, isLast ? 1 : 0)
      if let start {
        writer.message(5) { start.limits.write(to: &$0) }
        writer.varint(11, start.recordsSpans ? 1 : 0)
      }
      if let planning {
        for configuration in planning.configurations { writer.data(6, encode(configuration)) }
        writer.message(7) { $0.varint(1, planning.beyondByteCount) }
        for id in planning.renditionIDs { writer.string(8, id, isPresent: true) }
        writer.varint(12, planning.admittedByteCount)
      }
    case .plan(let configurations, let followingByteCount):
      for configuration in configurations { writer.data(6, encode(configuration)) }
      if let followingByteCount { writer.message(7) { $0.varint(1, followingByteCount) } }
    case .planPreview(let configuration, let maxSide):
      writer.data(6, encode(configuration))
      writer.varint(10, UInt64(maxSide))
    case .start(let ids, let offset, let byteCount, let isLast):
      for id in ids { writer.string(8, id, isPresent: true) }
      writer.varint(3, UInt64(byteCount))
      writer.varint(4, isLast ? 1 : 0)
      writer.varint(9, UInt64(offset))
    case .advance(let offset, let byteCount, let isLast):
      writer.varint(3, UInt64(byteCount))
      writer.varint(4, isLast ? 1 : 0)
      writer.varint(9, UInt64(offset))
    case .push(let byteCount, let isLast):
      writer.varint(3, UInt64(byteCount))
      writer.varint(4, isLast ? 1 : 0)
    case .proceed, .abandon: break
    }
    return writer.bytes
  }

  /// Reads a request.
  /// - `defaults`: limits with the spill directory of images that may use one.
  /// - `last`: the configuration that was read last, which is likely to come again.
  static func read(
    _ bytes: [UInt8], defaults: ImageLimits, last: inout EncodedConfiguration?
  ) -> (request: HelperRequest, work: UInt32)? {
    guard let message = WireMessage(bytes), let kind = Kind(rawValue: message.integer(1)) else { return nil }
    let (byteCount, isLast) = (message.count(3), message.flag(4))
    let followingByteCount = message.message(7).map { $0.integer(1) }
    var configurations: [ProcessingConfiguration] = []
    for bytes in message.all(6) {
      if bytes != last?.bytes { last = EncodedConfiguration(bytes) }
      guard let last else { return nil }
      configurations.append(last.configuration)
    }
    let request: HelperRequest
    switch kind {
    case .readHeader:
      request = .readHeader(
        byteCount: byteCount, isLast: isLast,
        start: message.message(5).map {
          ImageStart(limits: ImageLimits($0, defaults: defaults), recordsSpans: message.flag(11))
        },
        planning: configurations.isEmpty
          ? nil
          : Planning(
            configurations: configurations, beyondByteCount: followingByteCount ?? 0,
            admittedByteCount: message.integer(12),
            renditionIDs: message.texts(8)))
    case .plan: request = .plan(configurations, followingByteCount: followingByteCount)
    case .planPreview:
      guard let configuration = configurations.first else { return nil }
      request = .planPreview(configuration, maxSide: message.count(10))
    case .start:
      request = .start(
        renditionIDs: message.texts(8), offset: message.count(9), byteCount: byteCount, isLast: isLast)
    case .advance: request = .advance(offset: message.count(9), byteCount: byteCount, isLast: isLast)
    case .push: request = .push(byteCount: byteCount, isLast: isLast)
    case .proceed: request = .proceed
    case .abandon: request = .abandon
    }
    return (request, UInt32(clamping: message.integer(2)))
  }
}

/// A configuration and its canonical bytes.
struct EncodedConfiguration: Sendable {
  let configuration: ProcessingConfiguration
  let bytes: [UInt8]

  init(_ configuration: ProcessingConfiguration) {
    self.configuration = configuration
    bytes = configuration.fieldValue.canonicalBytes
  }

  /// Reads the bytes; returns `nil` if they are no configuration.
  init?(_ bytes: [UInt8]) {
    guard let value = FieldValue(canonicalBytes: bytes),
      let configuration = try? ProcessingConfiguration(value, field: "")
    else { return nil }
    self.configuration = configuration
    self.bytes = bytes
  }
}

extension ImageLimits {
  fileprivate func write(to writer: inout WireWriter) {
    writer.varint(1, maxPixels)
    writer.varint(2, maxBufferedPixels)
    writer.varint(3, UInt64(maxScans))
    writer.varint(4, maxWorkPixels)
    if let maxCPUTime {
      writer.message(5) {
        $0.varint(1, UInt64(clamping: maxCPUTime.components.seconds))
        $0.varint(2, UInt64(clamping: maxCPUTime.components.attoseconds))
      }
    }
    writer.varint(6, UInt64(memory))
    writer.varint(7, spill == nil ? 0 : 1)
  }

  fileprivate init(_ message: WireMessage, defaults: ImageLimits) {
    self = defaults
    maxPixels = message.integer(1)
    maxBufferedPixels = message.integer(2)
    maxScans = UInt32(clamping: message.integer(3))
    maxWorkPixels = message.integer(4)
    maxCPUTime = message.message(5).map {
      Duration(secondsComponent: Int64(clamping: $0.integer(1)), attosecondsComponent: Int64(clamping: $0.integer(2)))
    }
    memory = message.count(6)
    if !message.flag(7) { spill = nil }
  }
}
