internal import ImageCodecs

/// Images whose pixels are searched before they are planned.
extension ImageReader {
  /// Reads the header, stores the bytes, and decodes them until the search is done: the header is complete then.
  ///
  /// See `push`. The stored bytes are those that the pipeline decodes first.
  mutating func pushAnalyzed(
    _ bytes: RawSpan, isLast: Bool
  ) throws(PipelineError) -> (isComplete: Bool, consumedByteCount: Int) {
    let allowance = allowance ?? makeAllowance(cancellation)
    self.allowance = allowance
    let stored = stored ?? CompressedBytes(limit: .max, budget: budget)
    self.stored = stored
    allowance.begin()
    let began = ContinuousClock.now
    defer {
      allowance.end()
      analysisTime += began.duration(to: .now)
    }
    var consumed = 0
    if analysis == nil {
      let (isComplete, count) = try pushHeader(bytes, isLast: isLast)
      try stored.append(bytes.extracting(first: count))
      consumed = count
      guard isComplete, let header else { return (false, consumed) }
      if try beginAnalysis(header, isEnd: isLast && consumed == bytes.byteCount, stored, allowance) {
        return (true, consumed)
      }
    }
    let isComplete = try pushRest(of: bytes, &consumed, isLast: isLast, stored)
    return (isComplete, consumed)
  }

  /// Begins the search with the bytes of the header.
  /// - Returns: Whether it is done.
  private mutating func beginAnalysis(
    _ header: ImageHeader, isEnd: Bool, _ stored: CompressedBytes, _ allowance: WorkAllowance
  ) throws(PipelineError) -> Bool {
    headerByteCount = Int(stored.byteCount)
    _ = rewriter.take()
    var analysis = try ImageAnalysis(header, configurations, limits: limits, budget: budget, allowance: allowance)
    var isDone = false
    try stored.forEachChunk { (chunk, isLastChunk) throws(PipelineError) in
      if !isDone { isDone = try analysis.push(chunk, isLast: isEnd && isLastChunk) }
    }
    if isDone { try end(analysis) } else { self.analysis = consume analysis }
    return isDone
  }

  /// Continues the search with the bytes from `consumed` on.
  /// - Returns: Whether it is done.
  private mutating func pushRest(
    of bytes: RawSpan, _ consumed: inout Int, isLast: Bool, _ stored: CompressedBytes
  ) throws(PipelineError) -> Bool {
    guard consumed < bytes.byteCount || isLast, var analysis = analysis.take() else { return false }
    // A gain map is not part of the image.
    if let byteCount = imageDistance(in: bytes.extracting(droppingFirst: consumed), from: consumed),
      consumed + byteCount < bytes.byteCount
    {
      let image = bytes.extracting(droppingFirst: consumed).extracting(first: byteCount)
      try stored.append(image)
      consumed += byteCount
      let isEnd = gainMaps?.isImageEnd(position + UInt64(consumed)) ?? false
      if try analysis.push(image, isLast: isEnd) {
        try end(analysis)
        return true
      }
    }
    let rest = bytes.extracting(droppingFirst: consumed)
    consumed = bytes.byteCount
    try stored.append(rest)
    let isDone = try analysis.push(rest, isLast: isLast)
    guard isDone || !isLast else { throw PipelineError(.truncatedImage, "the image ends before its last row") }
    if isDone { try end(analysis) } else { self.analysis = consume analysis }
    return isDone
  }

  /// Creates the allowance of the work that follows, with the CPU time that the search has left.
  func makeAllowance(_ cancellation: Cancellation) -> WorkAllowance {
    WorkAllowance(cancellation, limit: limits.maxCPUTime, used: allowance?.used ?? .zero)
  }

  private mutating func end(_ analysis: consuming ImageAnalysis) throws(PipelineError) {
    findings = try analysis.finish()
    stored?.consume(headerByteCount)
  }
}
