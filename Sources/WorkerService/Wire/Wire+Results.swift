internal import Fields
internal import FoundationEssentials
internal import GRPCProtobuf
internal import ImagePipeline
internal import SwiftProtobuf
internal import WorkerProtocol

extension Imageworker_V1_ImageInfo {
  init(_ info: ImageInfo) {
    self.init()
    format = info.format
    width = UInt32(info.size.width)
    height = UInt32(info.size.height)
    orientation = UInt32(info.orientation)
    hasAlpha_p = info.hasAlpha
    bitDepth = UInt32(info.bitDepth)
    colorSpace = info.colorSpace
    frameCount = UInt32(info.frameCount)
    if let duration = info.duration { self.duration = Google_Protobuf_Duration(duration) }
    if let count = info.playCount { playCount = UInt32(clamping: count) }
    gamut = info.gamut
    if let tensor = info.tensor { self.tensor = Imageworker_V1_TensorInfo(tensor) }
    if let map = info.gainMap { gainMap = Imageworker_V1_GainMapInfo(map) }
  }
}

extension Imageworker_V1_GainMapInfo {
  fileprivate init(_ map: GainMapInfo) {
    self.init()
    kind = map.kind.rawValue
    (width, height) = (UInt32(clamping: map.size.width), UInt32(clamping: map.size.height))
    if let headroom = map.headroom { self.headroom = headroom }
  }
}

/// Field by field, as each raw result has two of these messages: `MessageWriter` takes 2 % of a small tensor's CPU time.
extension Imageworker_V1_TensorInfo {
  fileprivate init(_ info: TensorInfo) {
    self.init()
    elementType = .named(info.element.fieldValue, of: "TensorElementType")
    layout = .named(info.layout.fieldValue, of: "TensorLayout")
    channels = .named(info.channels.fieldValue, of: "TensorChannels")
    shape = info.shape.map { UInt32($0) }
    strides = info.strides.map { UInt64($0) }
    byteOrder = "little"
    let shown = info.content
    content = .with {
      ($0.x, $0.y) = (UInt32(shown.x), UInt32(shown.y))
      ($0.width, $0.height) = (UInt32(shown.width), UInt32(shown.height))
    }
  }
}

extension SwiftProtobuf.Enum {
  /// Returns the value of an enum of the contract with a short name: `fit` for `RESIZE_MODE_FIT`.
  static func named(_ name: FieldValue, of type: String) -> Self {
    let choices = ContractSchema.shared.choices(of: ".imageworker.v1.\(type)")
    guard let choice = choices.first(where: { .word($0.name) == name }) else {
      preconditionFailure("\(type) of the wire contract does not have \(name)")
    }
    return Self(rawValue: Int(choice.number)) ?? Self()
  }

  /// Returns the short name of a choice of the contract; `nil` for any other value, and for zero, which stands for "not set".
  func name(of type: String) -> String? {
    guard rawValue != 0 else { return nil }
    let choices = ContractSchema.shared.choices(of: ".imageworker.v1.\(type)")
    return choices.first { $0.number == Int32(truncatingIfNeeded: rawValue) }?.name
  }
}

extension Imageworker_V1_ProcessingReport {
  /// - `traceID`: the trace of the call, or `nil`.
  init(_ report: ProcessingReport, traceID: String?) {
    self.init()
    input = Imageworker_V1_ImageInfo(report.input)
    output = Imageworker_V1_ImageInfo(report.output)
    inputBytes = report.inputByteCount
    outputBytes = report.outputByteCount
    timings = Imageworker_V1_StageTimings(report.timings)
    peakMemoryBytes = report.peakMemoryByteCount
    warnings = report.warnings.map(\.message)
    warningDetails = report.warnings.map { Imageworker_V1_WarningDetail($0) }
    passthrough = report.isPassedThrough
    if let crop = report.crop { self.crop = Imageworker_V1_Rect(crop) }
    hiddenRegions = report.hiddenRegions.map { Imageworker_V1_Rect($0) }
    faces = report.faces.map { Imageworker_V1_Rect($0) }
    gainMapBytes = report.gainMapByteCount
    self.traceID = traceID ?? ""
    if let quality = report.compressionQuality { compressionQuality = quality }
    if let score = report.similarity { similarity = score }
    if let facts = report.facts { self.facts = Imageworker_V1_ImageFacts(facts) }
    formatTrials = report.formatTrials.map { trial in
      .with {
        $0.format = trial.format
        $0.estimatedBytes = trial.estimatedByteCount
        if let quality = trial.compressionQuality { $0.compressionQuality = quality }
      }
    }
  }
}

extension Imageworker_V1_Rect {
  init(_ rect: PixelRect) {
    self.init()
    unit = .pixels
    (x, y, width, height) = (Double(rect.x), Double(rect.y), Double(rect.width), Double(rect.height))
  }
}

extension Imageworker_V1_StageTimings {
  init(_ timings: StageTimings) {
    self.init()
    queued = Google_Protobuf_Duration(timings.queued)
    decode = Google_Protobuf_Duration(timings.decode)
    resize = Google_Protobuf_Duration(timings.resize)
    filter = Google_Protobuf_Duration(timings.filter)
    encode = Google_Protobuf_Duration(timings.encode)
    total = Google_Protobuf_Duration(timings.total)
  }
}

extension Google_Protobuf_Duration {
  fileprivate init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self.init(seconds: seconds, nanos: Int32(attoseconds / 1_000_000_000))
  }
}

extension Imageworker_V1_ProcessingReport {
  init(_ report: ResultReport) {
    self.init(report.processing, traceID: report.traceID)
    cacheHit = report.isCacheHit
  }
}

/// A message that holds one part of a result.
protocol ResultResponse {
  var renditionID: String { get set }
  var isPreview: Bool { get set }
  var header: Imageworker_V1_ImageInfo { get set }
  var chunk: Data { get set }
  var report: Imageworker_V1_ProcessingReport { get set }
  var error: Google_Rpc_Status { get set }
}

extension ResultResponse {
  /// Sets the fields of a part.
  /// - `status`: what an error stands in the message as.
  fileprivate mutating func set(_ part: ResultPart, status: (any Error) -> GoogleRPCStatus) {
    renditionID = part.rendition.id
    isPreview = part.rendition.isPreview
    switch part.content {
    case .header(let info): header = Imageworker_V1_ImageInfo(info)
    case .chunk(let bytes): chunk = bytes
    case .report(let report): self.report = Imageworker_V1_ProcessingReport(report)
    case .failure(let error): self.error = Google_Rpc_Status(status(error))
    }
  }
}

extension Imageworker_V1_ProcessImageResponse: ResultResponse {
  init(_ part: ResultPart) {
    self.init()
    set(part, status: WireError.renditionStatus(any:))
  }
}

extension Imageworker_V1_BatchProcessResponse: ResultResponse {
  init(itemID: String, _ part: ResultPart) {
    self.init()
    self.itemID = itemID
    set(part, status: WireError.itemStatus(any:))
  }

  /// The end of an item without a result.
  init(itemID: String, error: any Error) {
    self.init()
    self.itemID = itemID
    self.error = Google_Rpc_Status(WireError.itemStatus(any: error))
  }
}

extension Imageworker_V1_InspectImageResponse {
  /// The response for an image with one result.
  init(_ plan: PlannedImage, facts: ImageFacts?) throws {
    self.init()
    let result = try plan.renditions[0].get()
    info = Imageworker_V1_ImageInfo(result.input)
    output = Imageworker_V1_ImageInfo(result.output)
    decodedBytes = result.decodedByteCount
    workingSetBytes = plan.workingSetByteCount
    warningDetails = result.warnings.map { Imageworker_V1_WarningDetail($0) }
    if let facts { self.facts = Imageworker_V1_ImageFacts(facts) }
  }
}
