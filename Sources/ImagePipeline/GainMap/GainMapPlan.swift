internal import ImageCodecs

/// How a rendition keeps the gain map of its image.
struct GainMapPlan: Sendable, Hashable {
  /// The map, if it is not behind the image; `nil` if it is.
  var stored: DescribedGainMap?
  /// The segment with which the image declares a map of ISO 21496-1; empty without one.
  let marker: [UInt8]
  /// Whether the image declares that it has a map.
  let isDeclared: Bool
  /// The configuration of the map's encoder; its geometry is that of the rendition.
  let configuration: ProcessingConfiguration
  /// The maximum size in bytes of the rendition and its map; `nil` without a limit.
  let maxByteCount: UInt64?
  /// The bytes that the image may charge while the map is decoded, without the compressed map.
  var workingSetByteCount: UInt64 = 0

  init(_ source: GainMapSource, _ configuration: ProcessingConfiguration) {
    isDeclared = source.isDeclared
    switch source {
    case .listed(let search): (marker, stored) = (search.marker, nil)
    case .stored(let map): (marker, stored) = ([], map)
    case .unusable: (marker, stored) = ([], nil)
    }
    maxByteCount = configuration.maxBytes
    self.configuration = ProcessingConfiguration(
      compressionQuality: configuration.compressionQuality, preferredFormat: .jpeg,
      background: Color(red: 0, green: 0, blue: 0),
      alwaysEncode: configuration.alwaysEncode, resamplingKernel: configuration.resamplingKernel)
  }
}

extension ImageReader {
  /// The share of the memory for an image that its map may need, which has at most as many pixels but may have more
  /// chroma, and what it may need in any case: that of a progressive one of this size with all of its chroma.
  private static let mapShare = (numerator: UInt64(3), denominator: UInt64(2), byteCount: UInt64(512 * 1024))
  private static let maxProgressiveByteCount = UInt64(8 << 20)

  /// The bytes that the map of an image may need whose working set is `byteCount`.
  private func mapWorkingSet(_ byteCount: UInt64) -> UInt64 {
    let pixelCount = header.map { UInt64($0.width) * UInt64($0.height) } ?? 0
    let progressive = min(pixelCount * 6, Self.maxProgressiveByteCount)
    return max(byteCount * Self.mapShare.numerator / Self.mapShare.denominator, progressive) + Self.mapShare.byteCount
  }

  /// Returns the number of bytes up to the end of the image if a gain map may follow; `nil` if that is not known.
  /// - `bytes`: the bytes of the file behind those that were consumed.
  /// - `consumed`: the number of bytes of the current call that were consumed.
  mutating func imageDistance(in bytes: RawSpan, from consumed: Int) -> Int? {
    let start = position + UInt64(consumed)
    gainMaps?.follow(bytes, at: start)
    return gainMaps?.imageEnd(behind: start).map { Int(clamping: $0 - start) }
  }

  /// The maximum size of the image in its file, as far as that is known.
  private func maxImageByteCount(_ followingByteCount: UInt64?) -> UInt64 {
    let end = gainMaps?.imageEnd(behind: position) ?? followingByteCount.map { position + $0 }
    return end ?? UInt64(limits.memory)
  }

  /// Adds the gain map of the image to the renditions that keep it, and warnings to those that cannot.
  /// - `decodingByteCount`: the working set of the image if it is decoded.
  /// - `followingByteCount`: the number of bytes of the file that were not consumed, if it is known.
  mutating func planGainMap(
    _ source: GainMapSource, _ image: inout ImagePlan, _ configurations: [ProcessingConfiguration],
    decodingByteCount: UInt64, followingByteCount: UInt64?
  ) throws(PipelineError) {
    var (imageByteCount, mapByteCount, headByteCount) = (UInt64(0), UInt64(0), UInt64(0))
    for index in image.renditions.indices {
      guard configurations[index].gainMap == .keep, case .success(var plan) = image.renditions[index] else { continue }
      if let obstacle = GainMapObstacle(configurations[index], plan: plan) ?? source.obstacle {
        if source.isDeclared { plan.warnings.append(.removedGainMap(because: obstacle)) }
      } else {
        let gainMap = GainMapPlan(source, configurations[index])
        plan.gainMap = gainMap
        let spooled = try plan.spooledByteCounts(maxImageByteCount(followingByteCount), spill: limits.spill)
        imageByteCount += spooled.image
        mapByteCount += spooled.map
        headByteCount += UInt64(GainMapRoute.headByteCount)
      }
      image.renditions[index] = .success(plan)
    }
    guard mapByteCount > 0 else { return }
    let spooledByteCount =
      imageByteCount + mapByteCount + headByteCount + UInt64(source.byteCount + GainMapMetadata.maxByteCount)
    var map = mapWorkingSet(max(decodingByteCount, image.workingSetByteCount))
    if case .stored(let stored) = source { map = max(map, stored.decodingByteCount) }
    let needed = image.workingSetByteCount + spooledByteCount
    let wanted = max(image.workingSetByteCount, map) + spooledByteCount
    let fits = needed <= UInt64(limits.memory)
    if fits { image.workingSetByteCount = min(wanted, UInt64(limits.memory)) }
    for index in image.renditions.indices {
      guard case .success(var plan) = image.renditions[index], plan.gainMap != nil else { continue }
      if fits {
        plan.gainMap?.workingSetByteCount = image.workingSetByteCount - mapByteCount - headByteCount
      } else {
        plan.gainMap = nil
        if source.isDeclared { plan.warnings.append(.removedGainMap(because: .memory)) }
      }
      image.renditions[index] = .success(plan)
    }
    if fits { try storeGainMap(source, in: &image) }
  }

  /// Charges what is stored until the result is complete, and copies the map's file to the plans that keep it.
  private mutating func storeGainMap(_ source: GainMapSource, in image: inout ImagePlan) throws(PipelineError) {
    guard case .stored = source else { return }
    let budget = budget
    let file = try withDecoder { (decoder) throws(CodecError) in
      try budget.charge(source.byteCount)
      return decoder.gainMapFile
    }
    for index in image.renditions.indices {
      image.renditions[index] = image.renditions[index].map { plan in
        var plan = plan
        plan.gainMap?.stored?.file = file
        return plan
      }
    }
  }
}

extension Plan {
  /// Returns upper bounds of the bytes that the compressed image and map charge while they wait for each other.
  /// - `imageByteCount`: the maximum size of the image in its file.
  fileprivate func spooledByteCounts(
    _ imageByteCount: UInt64, spill: SpillDirectory?
  ) throws(PipelineError) -> (image: UInt64, map: UInt64) {
    let encoder = encoder
    let encoded = try withCodecErrors { () throws(CodecError) in try encoder.maxByteCount() }
    let copied = imageByteCount + UInt64(encoder.metadata.maxStoredByteCount) + 64
    let image = passthrough == .copied ? copied : encoded
    return (
      SpooledBytes.estimatedByteCount(image, spill: spill), SpooledBytes.estimatedByteCount(encoded, spill: spill)
    )
  }
}

extension Framing {
  /// Returns the framing of a gain map: the same part of it at the same position, in proportion to its size.
  /// - `size`: The size of the map, as displayed.
  /// - `image`: The size of its image, as displayed.
  func ofGainMap(_ size: PixelSize, image: PixelSize) -> Framing {
    let across = Double(size.width) / Double(image.width)
    let down = Double(size.height) / Double(image.height)
    func length(_ length: Int, _ factor: Double) -> Int { max(1, Int((Double(length) * factor).rounded())) }
    let (x, y) = (window.x * across, window.y * down)
    // Rounded products must not exceed the map.
    let part = Window(
      x: x, y: y, width: min(window.width * across, Double(size.width) - x),
      height: min(window.height * down, Double(size.height) - y))
    let canvas = PixelSize(width: length(canvasSize.width, across), height: length(canvasSize.height, down))
    let left = min(Int((Double(left) * across).rounded()), canvas.width - 1)
    let top = min(Int((Double(top) * down).rounded()), canvas.height - 1)
    let width = min(length(imageSize.width, across), canvas.width - left)
    let height = min(length(imageSize.height, down), canvas.height - top)
    let isPadded = self.isPadded
    let scaled = PixelSize(width: width, height: height)
    return Framing(
      window: part, imageSize: scaled, canvasSize: isPadded ? canvas : scaled, left: isPadded ? left : 0,
      top: isPadded ? top : 0)
  }
}
