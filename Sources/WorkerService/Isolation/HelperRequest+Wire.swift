internal import Fields
internal import ImagePipeline
internal import ProtobufWire

/// Requests as they are sent to a helper of the same program.
extension HelperRequest {
  private enum Kind: UInt64 {
    case readHeader = 1, start, advance, proceed, abandon, auxiliary
  }

  private var kind: Kind {
    switch self {
    case .work(let work):
      switch work.request {
      case .readHeader: .readHeader
      case .start: .start
      case .advance: .advance
      }
    case .auxiliary: .auxiliary
    case .proceed: .proceed
    case .abandon: .abandon
    }
  }

  /// - `work`: the number of the image.
  /// - `encode`: returns the canonical bytes of a configuration.
  func bytes(
    work number: UInt32, encode: (ProcessingConfiguration) -> [UInt8] = { $0.fieldValue.canonicalBytes }
  ) -> [UInt8] {
    var writer = WireWriter()
    writer.varint(1, kind.rawValue)
    writer.varint(2, UInt64(number))
    func write(_ input: Range<Int>, isLast: Bool, _ start: ImageStart?) {
      writer.varint(3, UInt64(input.lowerBound))
      writer.varint(4, UInt64(input.count))
      writer.varint(5, isLast ? 1 : 0)
      if let start {
        writer.message(6) { start.limits.write(to: &$0) }
        writer.varint(7, start.recordsSpans ? 1 : 0)
      }
    }
    let work: Work
    switch self {
    case .work(let request): work = request
    case .auxiliary(let part):
      write(part.input, isLast: part.isLast, part.start)
      writer.string(10, part.name)
      return writer.bytes
    case .proceed, .abandon: return writer.bytes
    }
    write(work.input, isLast: work.isLast, work.start)
    switch work.request {
    case .readHeader(let planning): writer.message(8) { planning.write(to: &$0, encode) }
    case .start(let ids): for id in ids { writer.string(9, id, isPresent: true) }
    case .advance: break
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
    let number = UInt32(clamping: message.integer(2))
    let offset = message.count(3)
    let input = offset..<(offset + message.count(4))
    let start = message.message(6).map {
      ImageStart(limits: ImageLimits($0, defaults: defaults), recordsSpans: message.flag(7))
    }
    let request: WorkRequest
    switch kind {
    case .readHeader:
      guard let planning = message.message(8).flatMap({ WorkRequest.Planning($0, last: &last) }) else { return nil }
      request = .readHeader(planning)
    case .start: request = .start(renditionIDs: message.texts(9))
    case .advance: request = .advance
    case .auxiliary:
      let name = message.text(10) ?? ""
      return (.auxiliary(Auxiliary(name: name, input: input, isLast: message.flag(5), start: start)), number)
    case .proceed: return (.proceed, number)
    case .abandon: return (.abandon, number)
    }
    return (.work(Work(request: request, input: input, isLast: message.flag(5), start: start)), number)
  }
}

extension WorkRequest.Planning {
  fileprivate func write(to writer: inout WireWriter, _ encode: (ProcessingConfiguration) -> [UInt8]) {
    switch results {
    case .renditions(let configurations): for configuration in configurations { writer.data(1, encode(configuration)) }
    case .preview(let configuration, let maxSide):
      writer.data(1, encode(configuration))
      writer.varint(2, UInt64(maxSide), isPresent: true)
    }
    if let followingByteCount { writer.varint(3, followingByteCount, isPresent: true) }
    writer.varint(4, admittedByteCount)
    for id in renditionIDs { writer.string(5, id, isPresent: true) }
    if let lateOrientation { writer.varint(6, UInt64(lateOrientation), isPresent: true) }
    if let countedFrames { writer.varint(7, UInt64(countedFrames), isPresent: true) }
    writer.varint(8, isInspection ? 1 : 0)
  }

  fileprivate init?(_ message: WireMessage, last: inout EncodedConfiguration?) {
    var configurations: [ProcessingConfiguration] = []
    for bytes in message.all(1) {
      if bytes != last?.bytes { last = EncodedConfiguration(bytes) }
      guard let last else { return nil }
      configurations.append(last.configuration)
    }
    guard let first = configurations.first else { return nil }
    self.init(results: message.has(2) ? .preview(first, maxSide: message.count(2)) : .renditions(configurations))
    followingByteCount = message.has(3) ? message.integer(3) : nil
    admittedByteCount = message.integer(4)
    renditionIDs = message.texts(5)
    lateOrientation = message.has(6) ? message.count(6) : nil
    countedFrames = message.has(7) ? message.count(7) : nil
    isInspection = message.flag(8)
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
    writer.varint(8, UInt64(frameMemory))
    writer.varint(9, UInt64(maxAnimationFrames))
    writer.varint(10, maxAnimationPixels)
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
    frameMemory = message.count(8)
    maxAnimationFrames = UInt32(clamping: message.integer(9))
    maxAnimationPixels = message.integer(10)
    if !message.flag(7) { spill = nil }
  }
}
