internal import ImageCodecs

/// The decoding, processing and encoding of a gain map for all renditions that keep it.
struct GainMapWork: ~Copyable {
  private enum Phase: ~Copyable {
    case seeking
    case header(ImageReader)
    case working(any ImageRoute)
  }

  /// The state of the work; `nil` once it has ended.
  private var phase: Phase? = .seeking
  /// The position behind the image in the file that is read.
  private var end: UInt64 = 0
  /// The search for the places of the map; `nil` if it is not read from the file.
  private var search: GainMapSearch?
  /// The position before which no place is considered.
  private var start: UInt64 = 0
  /// The map of an HEIC or AVIF file, which is not read from the file.
  private let stored: DescribedGainMap?
  private let isDeclared: Bool
  private let imageSize: PixelSize
  private var limits: ImageLimits
  private let budget: ImageBudget
  private let cancellation: Cancellation
  private var tracing: TraceTarget
  /// The description of the map in its header.
  private(set) var metadata = GainMapMetadata()
  private var isMetadataCharged = false
  /// The reports of the map for each of the files; empty without a usable map.
  private(set) var reports: [ProcessingReport] = []
  /// The reason why there is no usable map; `nil` if there is one, or none at all.
  private(set) var obstacle: GainMapObstacle?

  init(
    _ files: [GainMapFile], search: GainMapSearch?, limits: ImageLimits, budget: ImageBudget,
    cancellation: Cancellation, tracing: TraceTarget
  ) {
    stored = files.first?.gainMap.stored
    self.search = stored == nil ? search : nil
    isDeclared = files.first?.gainMap.isDeclared ?? false
    imageSize = files.first?.plan.storedSize ?? PixelSize(width: 1, height: 1)
    self.limits = limits
    self.budget = budget
    self.cancellation = cancellation
    self.tracing = tracing
    self.tracing.renditionID = "gain_map"
  }

  /// Returns the number of bytes up to the end of the image if a map may follow; `nil` if that is not known.
  /// - `bytes`: the bytes of the file from `position` on.
  mutating func imageDistance(in bytes: RawSpan, from position: UInt64) -> Int? {
    search?.follow(bytes, at: position)
    return search?.imageEnd(behind: max(start, position)).map { Int(clamping: $0 - position) }
  }

  /// Whether the image is known to end at `position`.
  func isImageEnd(_ position: UInt64) -> Bool { search?.isImageEnd(position) ?? false }

  /// Ignores places before `position`.
  mutating func skip(to position: UInt64) { start = max(start, position) }

  /// The next place of a map.
  private var nextPlace: GainMapSearch.Place? {
    if let stored { return start > 0 ? nil : .init(offset: 0, byteCount: UInt64(stored.file.count)) }
    return search?.places.first { $0.offset >= start }
  }

  /// Consumes the next bytes of the file.
  /// - Parameters:
  ///   - bytes: The next bytes.
  ///   - start: Their position in the file.
  ///   - isLast: Whether they are the last ones.
  ///   - files: Receive the compressed bytes.
  ///   - cpuTime: The CPU time that the image has used.
  /// - Returns: Whether the work has ended, and the number of consumed bytes.
  /// - Throws: An error that ends the whole image.
  mutating func advance(
    _ bytes: RawSpan, at start: UInt64, isLast: Bool, _ files: [GainMapFile], after cpuTime: Duration
  ) throws(PipelineError) -> (isEnded: Bool, consumedByteCount: Int) {
    guard let stored else { return try read(bytes, at: start, isLast: isLast, files, after: cpuTime) }
    let isEnded = try stored.file.withRawSpan { (file) throws(PipelineError) in
      try read(file, at: 0, isLast: true, files, after: cpuTime).isEnded
    }
    return (isEnded, 0)
  }

  /// Reads the next bytes of the file with the map.
  private mutating func read(
    _ bytes: RawSpan, at start: UInt64, isLast: Bool, _ files: [GainMapFile], after cpuTime: Duration
  ) throws(PipelineError) -> (isEnded: Bool, consumedByteCount: Int) {
    var taken = 0
    while true {
      let (rest, position) = (bytes.extracting(droppingFirst: taken), start + UInt64(taken))
      do throws(PipelineError) { taken += try step(rest, position, isLast: isLast, files, cpuTime) } catch {
        obstacle = try GainMapObstacle(error)
        phase = nil
        reports = []
      }
      if phase == nil { return (true, taken) }
      if taken == bytes.byteCount && !isLast { return (false, taken) }
    }
  }

  /// Continues with the current phase.
  /// - Returns: The number of consumed bytes.
  private mutating func step(
    _ bytes: RawSpan, _ position: UInt64, isLast: Bool, _ files: [GainMapFile], _ cpuTime: Duration
  ) throws(PipelineError) -> Int {
    let portion = bytes.extracting(first: end > position ? Int(clamping: end - position) : 0)
    let isEnd = position + UInt64(portion.byteCount) == end || (isLast && portion.byteCount == bytes.byteCount)
    switch phase.take() {
    case .seeking?: return try seek(bytes, position, isLast: isLast, files)
    case .header(let reader)?: return try readHeader(reader, portion, at: position, isLast: isEnd, files, cpuTime)
    case .working(let route)?: return try work(route, portion, isLast: isEnd, files)
    case nil: return 0
    }
  }

  /// Skips bytes up to the next place of a map.
  private mutating func seek(
    _ bytes: RawSpan, _ position: UInt64, isLast: Bool, _ files: [GainMapFile]
  ) throws(PipelineError) -> Int {
    search?.follow(bytes, at: position)
    if search?.isFollowing == true, !files.isEmpty, !isLast {
      phase = .seeking
      return bytes.byteCount
    }
    skip(to: position)
    guard !files.isEmpty, let place = nextPlace else {
      if isDeclared { obstacle = .damage }
      phase = nil
      return 0
    }
    let count = min(bytes.byteCount, Int(clamping: place.offset - position))
    if position + UInt64(count) == place.offset, count < bytes.byteCount || !isLast {
      try begin(at: place)
    } else if isLast {
      if isDeclared { obstacle = .damage }
      phase = nil
    } else {
      phase = .seeking
    }
    return count
  }

  /// Begins to read what may be a map.
  private mutating func begin(at place: GainMapSearch.Place) throws(PipelineError) {
    skip(to: place.offset + 1)
    try chargeMetadata()
    metadata = stored.map { GainMapMetadata(iso: $0.metadata, properties: $0.properties) } ?? GainMapMetadata()
    var reader = ImageReader(limits: limits, budget: budget)
    reader.gainMapFormats = stored == nil ? [.jpeg] : ImageFormat.storingGainMaps
    phase = .header(reader)
    end = place.offset + place.byteCount
  }

  /// Charges the description of the map before it is read, once for all places; that of a stored map is charged already.
  private mutating func chargeMetadata() throws(PipelineError) {
    guard !isMetadataCharged, stored == nil else { return }
    try withCodecErrors { () throws(CodecError) in try budget.charge(GainMapMetadata.maxByteCount) }
    isMetadataCharged = true
  }

  private mutating func readHeader(
    _ reader: consuming ImageReader, _ bytes: RawSpan, at position: UInt64, isLast: Bool, _ files: [GainMapFile],
    _ cpuTime: Duration
  ) throws(PipelineError) -> Int {
    var reader = reader
    let pushed: (isComplete: Bool, consumedByteCount: Int)
    do throws(PipelineError) { pushed = try reader.push(bytes, isLast: isLast) } catch {
      _ = try GainMapObstacle(error)
      // It need not be a map.
      let next = nextPlace
      guard !metadata.isGainMap, next != nil || !isDeclared else { throw error }
      phase = .seeking
      return next.map { min(bytes.byteCount, Int(clamping: $0.offset - min(position, $0.offset))) } ?? bytes.byteCount
    }
    let count = pushed.consumedByteCount
    if stored == nil { metadata.push(bytes.extracting(first: count)) }
    guard pushed.isComplete else {
      phase = .header(reader)
      return count
    }
    guard metadata.isGainMap else {
      phase = .seeking
      return count
    }
    limits.maxCPUTime = limits.maxCPUTime.map { max(.zero, $0 - cpuTime) }
    let plan = try reader.gainMapPlan(files, imageSize: imageSize)
    phase = .working(try reader.takeRoute(plan, cancellation: cancellation, tracing: tracing))
    return count
  }

  private mutating func work(
    _ route: any ImageRoute, _ bytes: RawSpan, isLast: Bool, _ files: [GainMapFile]
  ) throws(PipelineError) -> Int {
    let isDone = try route.push(bytes, isLast: isLast) { index, compressed in files[index].append(map: compressed) }
    for file in files { try file.check() }
    guard isDone else {
      phase = .working(route)
      return bytes.byteCount
    }
    for index in files.indices {
      switch route.outcome(of: index) {
      case .success(let report): reports.append(report)
      case .failure(let error): throw error
      case nil: throw .unfinishedHeader
      }
    }
    phase = nil
    return bytes.byteCount
  }
}

extension ImageReader {
  /// Plans the results of a gain map, whose header this has read; they have the geometry of its image's results.
  /// - `imageSize`: The size of the image, as stored.
  fileprivate mutating func gainMapPlan(
    _ files: [GainMapFile], imageSize: PixelSize
  ) throws(PipelineError) -> ImagePlan {
    guard var header, header.width <= imageSize.width, header.height <= imageSize.height else {
      throw PipelineError(.unsupportedImage, "the gain map is larger than its image")
    }
    // Its samples are no colors.
    (header.profileByteCount, header.conversionByteCount, header.gamut) = (0, 0, .srgb)
    let stored = PixelSize(width: header.width, height: header.height)
    let drafts = files.map { file in
      let orientation = file.plan.orientation
      let framing = file.plan.framing.ofGainMap(
        stored.rotated(by: orientation), image: imageSize.rotated(by: orientation))
      return Result<PlanDraft, PipelineError>.success(
        PlanDraft(
          configuration: file.gainMap.configuration, orientation: orientation, framing: framing, isGainMap: true,
          levels: file.gainMap.stored?.levels))
    }
    let decoded = try decodedPlan(header, drafts)
    let limit = files[0].gainMap.workingSetByteCount
    if files.count == 1, case .success(var only) = decoded.renditions[0] {
      try choosePassthrough(&only, header, files[0].gainMap.configuration, nil)
      let plan = ImagePlan(only)
      if plan.workingSetByteCount <= limit { return plan }
      _ = rewriter.take()
    }
    guard decoded.workingSetByteCount <= limit else {
      throw PipelineError(
        exceeding: "image_memory_limit", limit: limit, value: decoded.workingSetByteCount,
        unit: "bytes of memory for its gain map")
    }
    return decoded
  }
}
