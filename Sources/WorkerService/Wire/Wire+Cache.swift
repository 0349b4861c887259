internal import Fields
package import ImagePipeline
internal import ResultCache
internal import SwiftProtobuf
package import WorkerProtocol

/// What the cache stores is what goes over the wire, so that files of other versions can be read.
extension ProcessingReport {
  /// The part of the report that is kept with a result, for `init(wireBytes:)`: all that is not about one call.
  var cacheMetadata: [UInt8]? {
    var wire = Imageworker_V1_ProcessingReport(self, traceID: nil)
    wire.clearTimings()
    wire.peakMemoryBytes = 0
    return try? wire.serializedBytes()
  }

  /// Creates the report without its timings, which are zero.
  init(_ wire: Imageworker_V1_ProcessingReport) {
    self.init(
      input: ImageInfo(wire.input), output: ImageInfo(wire.output), inputByteCount: wire.inputBytes,
      outputByteCount: wire.outputBytes, timings: StageTimings(), peakMemoryByteCount: wire.peakMemoryBytes,
      warnings: Warning.all(of: wire),
      compressionQuality: wire.hasCompressionQuality ? wire.compressionQuality : nil,
      similarity: wire.hasSimilarity ? wire.similarity : nil,
      formatTrials: wire.formatTrials.map { trial in
        FormatTrial(
          format: trial.format, estimatedByteCount: trial.estimatedBytes,
          compressionQuality: trial.hasCompressionQuality ? trial.compressionQuality : nil)
      }, facts: wire.hasFacts ? ImageFacts(wire.facts) : nil, crop: wire.hasCrop ? PixelRect(wire.crop) : nil,
      hiddenRegions: wire.hiddenRegions.compactMap { PixelRect($0) },
      faces: wire.faces.compactMap { PixelRect($0) }, gainMapByteCount: wire.gainMapBytes,
      isPassedThrough: wire.passthrough)
  }
}

extension PixelRect {
  /// Returns `nil` for numbers that no image has.
  package init?(_ wire: Imageworker_V1_Rect) {
    guard wire.isPlausible else { return nil }
    self.init(x: Int(wire.x), y: Int(wire.y), width: Int(wire.width), height: Int(wire.height))
  }
}

extension Imageworker_V1_Rect {
  /// Whether the numbers are those of pixels.
  fileprivate var isPlausible: Bool {
    [x, y, width, height].allSatisfy { $0 >= 0 && $0 < Double(1 << 31) }
  }
}

/// The metadata of a cached result is not a plausible report.
struct ImplausibleReport: Error {}

extension Imageworker_V1_ProcessingReport {
  /// Whether the numbers are small enough to be added and multiplied.
  var isPlausible: Bool {
    input.isPlausible && output.isPlausible && max(inputBytes, outputBytes, peakMemoryBytes, gainMapBytes) <= 1 << 50
      && formatTrials.allSatisfy { $0.estimatedBytes <= 1 << 50 } && (!hasFacts || facts.isPlausible)
      && crop.isPlausible && hiddenRegions.count <= Region.maxHiddenCount && hiddenRegions.allSatisfy(\.isPlausible)
      && faces.count <= Region.maxFaceCount && faces.allSatisfy(\.isPlausible)
  }
}

extension Imageworker_V1_ImageInfo {
  /// Whether the number of pixels can be computed.
  var isPlausible: Bool { max(width, height) < 1 << 31 }
}

extension ImageInfo {
  init(_ wire: Imageworker_V1_ImageInfo) {
    self.init(
      format: wire.format, size: PixelSize(width: Int(wire.width), height: Int(wire.height)),
      orientation: Int(wire.orientation), hasAlpha: wire.hasAlpha_p, bitDepth: Int(wire.bitDepth),
      colorSpace: wire.colorSpace, frameCount: Int(wire.frameCount),
      duration: wire.hasDuration
        ? .seconds(min(max(0, wire.duration.seconds), 1 << 40)) + .nanoseconds(Int64(max(0, wire.duration.nanos)))
        : nil,
      playCount: wire.hasPlayCount ? Int(wire.playCount) : nil, gamut: wire.gamut,
      tensor: wire.hasTensor ? TensorInfo(wire.tensor) : nil,
      gainMap: wire.hasGainMap ? GainMapInfo(wire.gainMap) : nil)
  }
}

extension GainMapInfo {
  /// Creates the properties that a file or another process has; `nil` if they are not those of a map.
  fileprivate init?(_ wire: Imageworker_V1_GainMapInfo) {
    guard let kind = Kind(rawValue: wire.kind) else { return nil }
    self.init(
      kind: kind, size: PixelSize(width: Int(wire.width), height: Int(wire.height)),
      headroom: wire.hasHeadroom && wire.headroom.isFinite ? wire.headroom : nil)
  }
}

extension TensorInfo {
  /// Creates the layout that a file or another process has; `nil` if it is not that of a result.
  fileprivate init?(_ wire: Imageworker_V1_TensorInfo) {
    // Field by field, as a helper's response has two of these messages: `MessageReader` takes 2 % of a small tensor's CPU time.
    let content = wire.content
    self.init(
      element: wire.elementType.name(of: "TensorElementType"), layout: wire.layout.name(of: "TensorLayout"),
      channels: wire.channels.name(of: "TensorChannels"), shape: wire.shape,
      content: (content.x, content.y, content.width, content.height))
  }
}

extension CacheKey {
  /// The key of an image's result.
  ///
  /// It covers every field of the configuration, at every depth, by the fields' names. A field that is not set and one
  /// that is set to its default differ, although their results do not: such a result is stored twice, never wrongly
  /// served. Results of another version have other keys.
  /// - `configuration`: complete, with the preset's fields in place.
  /// - `auxiliary`: the images that its overlays name.
  init(
    input: InputHasher, configuration: ProcessingConfiguration, auxiliary: AuxiliaryImages = AuxiliaryImages(),
    version: UInt64 = ResultVersion.current
  ) {
    var parts: [FieldValue] = [.integer(version), configuration.fieldValue]
    if !auxiliary.isEmpty {
      parts.append(
        .list(
          auxiliary.all.flatMap { image -> [FieldValue] in
            [FieldValue.word(image.name)] + image.digest.map { FieldValue.integer(UInt64($0)) }
          }))
    }
    // Faces are found by another detector in other places.
    if configuration.findsFaces { parts.append(.list([.word("faces"), .integer(FaceDetection.identity)])) }
    self.init(input: input, configuration: FieldValue.list(parts).canonicalBytes)
  }
}
