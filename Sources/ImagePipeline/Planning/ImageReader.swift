internal import ImageCodecs

/// Reads the first bytes of an image until its format and header are known.
///
/// Nothing is decoded and little memory is allocated: a few kilobytes, or the file itself for formats whose decoder
/// needs the whole file. Once `push` reports that the header is complete, the image can be planned, and the reader can
/// be consumed to create a `Pipeline`.
package struct ImageReader: ~Copyable {
  let limits: ImageLimits
  /// Whether the decoder keeps EXIF, XMP and IPTC; must be set before the first bytes are pushed.
  package var keepsMetadata: Bool
  /// The configurations of the results; must be set before the first bytes are pushed if they are known.
  ///
  /// An animation that can be read frame by frame is buffered as a whole if a result needs that. Without them, none is.
  package var configurations: [ProcessingConfiguration] = []
  let budget: ImageBudget
  /// Bytes that are buffered until there are enough of them to identify the format.
  ///
  /// The decoder must read what is left of them before any later bytes.
  private(set) var prefix: [UInt8] = []
  /// The decoder, which has read the header; `nil` after an error.
  var decoder: Decoder?
  // Also reads the header, in case the image can be passed through.
  var rewriter: Rewriter?
  // The color profile, once a plan contains it.
  var profile: [UInt8] = []
  // The metadata, once a plan contains some of it.
  var metadata = ImageMetadata()
  private(set) var inputByteCount: UInt64 = 0
  /// The orientation that `LateOrientation` has found in the whole file; `nil` if there is none, or only a part is known.
  ///
  /// It counts if it is set before the header is complete.
  package var lateOrientation: Int?
  /// The number of frames that `frameCount` has counted in the whole file; `nil` if only a part is known.
  ///
  /// It is needed for a frame that is counted from the end.
  package var countedFrames: Int?
  /// Whether the header contains that number, as the file does not.
  private(set) var hasCountedHeader = false
  /// Stops the search of pixels when it is cancelled.
  package var cancellation = Cancellation()

  // The search of the image's pixels, and what it has found.
  var analysis: ImageAnalysis?
  var findings: ImageFindings?
  var allowance: WorkAllowance?
  // The bytes that were read for it, and the number of those that the decoder for the results has read.
  var stored: CompressedBytes?
  var headerByteCount = 0
  var analysisTime = Duration.zero
  /// The images that overlays name; must be set before the image is planned.
  package var auxiliary = AuxiliaryImages()
  // The search for a gain map; `nil` if no result keeps one.
  var gainMaps: GainMapSearch?
  /// The formats that the image may have as a gain map; empty if it is none.
  var gainMapFormats: [ImageFormat] = []
  /// Whether the image is only planned; must be set before the first bytes are pushed.
  ///
  /// Plans then describe the gain map of an HEIC or AVIF, and nothing is decoded, as if searches of pixels found nothing.
  package var isInspection = false
  /// Whether the decoder keeps the gain map of its file.
  private(set) var keepsStoredGainMap = false
  /// The number of bytes that were consumed.
  private(set) var position: UInt64 = 0

  /// Creates a reader for one image, with a memory budget of `limits.memory` bytes.
  /// - Parameters:
  ///   - limits: The limits of the image.
  ///   - keepsMetadata: Whether a result may contain metadata of the image; see
  ///     `ProcessingConfiguration.readsMetadata`.
  package init(limits: ImageLimits, keepsMetadata: Bool = false) {
    self.limits = limits
    self.keepsMetadata = keepsMetadata
    budget = ImageBudget(limit: limits.memory)
  }

  /// Creates a reader for an image that is part of another one, to whose budget it is charged.
  init(limits: ImageLimits, budget: ImageBudget) {
    self.limits = limits
    self.budget = budget
    keepsMetadata = false
  }

  /// Consumes the next bytes, until the header is complete.
  /// - Parameters:
  ///   - bytes: The next bytes of the image.
  ///   - isLast: Whether these are the last bytes of the image.
  /// - Returns: Whether the header is complete, and how many bytes were consumed. The remaining bytes must be pushed to
  ///   the `Pipeline`.
  /// - Throws: `emptyImage`, `unknownFormat`, `unsupportedImage`, `corruptImage`, `truncatedImage`, `limitExceeded`.
  package mutating func push(
    _ bytes: RawSpan, isLast: Bool
  ) throws(PipelineError) -> (isComplete: Bool, consumedByteCount: Int) {
    let isAnalyzed = !isInspection && configurations.contains(where: \.needsAnalysis)
    let pushed = isAnalyzed ? try pushAnalyzed(bytes, isLast: isLast) : try pushHeader(bytes, isLast: isLast)
    position += UInt64(pushed.consumedByteCount)
    return pushed
  }

  /// Consumes the next bytes, until the header itself is complete.
  mutating func pushHeader(
    _ bytes: RawSpan, isLast: Bool
  ) throws(PipelineError) -> (isComplete: Bool, consumedByteCount: Int) {
    var consumed = 0
    if decoder == nil {
      guard try sniff(bytes, isLast: isLast, consumed: &consumed) else { return (false, consumed) }
      if !prefix.isEmpty {
        let isComplete = try readPrefix(isLast: isLast && consumed == bytes.byteCount)
        if isComplete { return (true, consumed) }
      }
    }
    while true {
      let rest = bytes.extracting(droppingFirst: consumed)
      let (isRead, count) = try withDecoder { (decoder) throws(CodecError) in
        let progress = try decoder.readHeader(rest, isLast: isLast)
        return (progress.value, progress.consumedByteCount)
      }
      inputByteCount += UInt64(count)
      try note(rest.extracting(first: count))
      consumed += count
      guard isRead else { return (false, consumed) }
      if try noteHeader() { return (true, consumed) }
    }
  }

  /// Returns the name of a file's format, detected from its first bytes; `nil` if they are too few or match no known
  /// format.
  package static func formatName(_ bytes: RawSpan) -> String? {
    bytes.isEmpty ? nil : ImageFormat.sniff(bytes)?.rawValue
  }

  /// Returns the number of pixels to decode that the beginning of a file states; `nil` if it is not known.
  ///
  /// Nothing is verified: a decoder reads the header again, and rejects what is wrong with it.
  package static func decodingPixelCount(_ bytes: RawSpan) -> Int? { HeaderExtent.decodingPixelCount(bytes) }

  /// Returns the EXIF orientation that stands behind the image data of a PNG.
  /// - Parameter file: The whole file.
  /// - Returns: The orientation, 1 to 8; `nil` if there is none.
  package static func lateOrientation(of file: RawSpan) -> Int? { LateOrientation.find(in: file)?.rawValue }

  /// As `lateOrientation(of:)`, for a file of which only parts are read; see `LateOrientation.find`.
  package static func lateOrientation(_ read: (_ offset: Int, _ byteCount: Int) -> [UInt8]) -> Int? {
    LateOrientation.find(read)?.rawValue
  }

  /// Returns the number of frames of a GIF or an animated WebP, whose header does not contain it.
  /// - Parameter file: The whole file.
  /// - Returns: `nil` if the file is none of them, or incomplete.
  package static func frameCount(of file: RawSpan) -> Int? { FrameCount.find(in: file) }

  /// As `frameCount(of:)`, for a file of which only parts are read; see `FrameCount.find`.
  package static func frameCount(_ read: (_ offset: Int, _ byteCount: Int) -> [UInt8]) -> Int? { FrameCount.find(read) }

  /// The header of the image; `nil` until it is complete.
  var header: ImageHeader?
  var selectedFrames = FrameSelection.first

  /// Returns the rewriter, started as the plan specifies, which takes over the buffered data of the decoder.
  consuming func startRewriter(_ plan: Plan) throws(PipelineError) -> Rewriter {
    guard let decoder = decoder.take(), var rewriter = rewriter.take() else { throw .unfinishedHeader }
    do {
      // Both a trial and a transform read all compressed data.
      let mayLackEnd = plan.trialScale != nil || plan.passthrough != .copied
      try rewriter.start(
        decoder, orientation: plan.orientation, metadata: plan.passthrough.metadata(plan.encoder),
        recoding: plan.passthrough.recoding(plan.encoder), mayLackEnd: mayLackEnd)
    } catch { throw PipelineError(error) }
    return rewriter
  }

  /// Creates the decoding trial of the plan; returns `nil` if the plan has none.
  func makeTrial(_ plan: Plan, allowance: WorkAllowance) throws(PipelineError) -> PassthroughTrial? {
    guard let scale = plan.trialScale, let format = header?.format else { return nil }
    return try PassthroughTrial(
      format: format, scale: scale, frames: plan.frames, limits: limits.codec, budget: budget, allowance: allowance)
  }

  private mutating func note(_ bytes: RawSpan) throws(PipelineError) {
    let budget = budget
    try withCodecErrors { () throws(CodecError) in
      try gainMaps?.push(bytes) { (byteCount) throws(CodecError) in try budget.charge(byteCount) }
    }
    guard var lent = rewriter.take() else { return }
    lent.note(bytes)
    rewriter = consume lent
  }

  private mutating func sniff(_ bytes: RawSpan, isLast: Bool, consumed: inout Int) throws(PipelineError) -> Bool {
    let format: ImageFormat?
    if prefix.isEmpty, bytes.byteCount >= ImageFormat.sniffByteCount || isLast {
      if bytes.isEmpty { throw PipelineError(.emptyImage, "the image has no bytes; send the bytes of an image file") }
      format = ImageFormat.sniff(bytes)
    } else {
      let taken = min(bytes.byteCount, ImageFormat.sniffByteCount - prefix.count)
      prefix.append(bytes.extracting(first: taken))
      consumed = taken
      inputByteCount += UInt64(taken)
      guard prefix.count == ImageFormat.sniffByteCount || isLast else { return false }
      format = prefix.withRawSpan { ImageFormat.sniff($0) }
    }
    guard let format else {
      throw PipelineError(.unknownFormat, "the first bytes match no known image format; send an image file")
    }
    guard gainMapFormats.isEmpty || gainMapFormats.contains(format) else {
      throw PipelineError(.unsupportedImage, "a gain map has another format")
    }
    guard format.isDecodable else {
      throw PipelineError(
        .unsupportedImage, "this worker was built without the decoder for \(format.rawValue); send another format")
    }
    do { try beginDecoding(format) } catch { throw PipelineError(error) }
    return true
  }

  private mutating func beginDecoding(_ format: ImageFormat) throws(CodecError) {
    var codecLimits = limits.codec
    let keepsGainMap = configurations.contains { $0.gainMap == .keep }
    keepsStoredGainMap = (keepsGainMap || isInspection) && ImageFormat.storingGainMaps.contains(format)
    // The headroom of a map of Apple follows from the metadata of its image.
    codecLimits.keepsMetadata = keepsMetadata || keepsStoredGainMap
    (codecLimits.keepsGainMap, codecLimits.isGainMap) = (keepsStoredGainMap, !gainMapFormats.isEmpty)
    decoder = try Decoder(format: format, limits: codecLimits, budget: budget)
    if Passthrough.isPossible(format, configurations) {
      rewriter = try Rewriter(format: format, limits: limits.codec, budget: budget)
    }
    if format == .jpeg, keepsGainMap { gainMaps = GainMapSearch() }
  }

  private mutating func readPrefix(isLast: Bool) throws(PipelineError) -> Bool {
    let bytes = prefix
    let (isComplete, count) = try withDecoder { (decoder) throws(CodecError) in
      let progress = try bytes.withRawSpan { (bytes) throws(CodecError) in
        try decoder.readHeader(bytes, isLast: isLast)
      }
      return (progress.value, progress.consumedByteCount)
    }
    try bytes.withRawSpan { (bytes) throws(PipelineError) in try note(bytes.extracting(first: count)) }
    prefix.removeFirst(count)
    return isComplete ? try noteHeader() : false
  }

  /// Returns whether the header is complete: the results may need the whole file of an animation.
  private mutating func noteHeader() throws(PipelineError) -> Bool {
    let orientation = lateOrientation.flatMap { Orientation(rawValue: $0) }
    header = try withDecoder { decoder in
      if let orientation { decoder.setOrientation(orientation) }
      return decoder.header
    }
    countFrames()
    guard try needsWholeFile() else { return true }
    try withDecoder { (decoder) throws(CodecError) in try decoder.bufferInput() }
    (header, selectedFrames) = (nil, .first)
    return false
  }

  /// Adds the number of frames that was counted to a header that does not contain it.
  mutating func countFrames() {
    if let countedFrames, let counted = header, counted.hasFrames, counted.frameCount == 0 {
      header?.frameCount = countedFrames
      hasCountedHeader = true
    }
  }

  /// Calls `body` with the decoder.
  ///
  /// If `body` throws, the decoder is discarded and the reader can no longer be used.
  mutating func withDecoder<Result>(
    _ body: (inout Decoder) throws(CodecError) -> Result
  ) throws(PipelineError) -> Result {
    guard var lent = decoder.take() else { throw .unfinishedHeader }
    let result: Result
    do { result = try body(&lent) } catch { throw PipelineError(error) }
    decoder = consume lent
    return result
  }
}
