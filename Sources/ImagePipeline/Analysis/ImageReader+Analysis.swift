internal import ImageCodecs

/// Images whose pixels are searched before they are planned.
extension ImageReader {
  /// Reads the header, stores the bytes, and decodes them until the search is done: the header is complete then.
  ///
  /// See `push`. The stored bytes are those that the pipeline decodes first.
  mutating func pushAnalyzed(
    _ bytes: RawSpan, isLast: Bool
  ) throws(PipelineError) -> (isComplete: Bool, consumedByteCount: Int) {
    let allowance = allowance ?? WorkAllowance(cancellation, limit: limits.maxCPUTime)
    self.allowance = allowance
    let stored = stored ?? StoredInput(budget: budget)
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
      headerByteCount = stored.byteCount
      _ = rewriter.take()
      let isEnd = isLast && consumed == bytes.byteCount
      var analysis = try ImageAnalysis(
        header, configurations, limits: limits, budget: budget, allowance: allowance)
      var isDone = false
      try stored.forEach { (chunk, isLastChunk) throws(PipelineError) in
        if !isDone { isDone = try analysis.push(chunk, isLast: isEnd && isLastChunk) }
      }
      if isDone { return try end(analysis, consumed) }
      self.analysis = consume analysis
    }
    var rest = bytes.extracting(droppingFirst: consumed)
    guard !rest.isEmpty || isLast, var analysis = analysis.take() else { return (false, consumed) }
    // A gain map is not part of the image.
    if let byteCount = gainMapDistance(from: consumed), byteCount < rest.byteCount {
      let image = rest.extracting(first: byteCount)
      try stored.append(image)
      consumed += byteCount
      if try analysis.push(image, isLast: false) { return try end(analysis, consumed) }
      rest = rest.extracting(droppingFirst: byteCount)
    }
    try stored.append(rest)
    let isDone = try analysis.push(rest, isLast: isLast)
    if isDone { return try end(analysis, bytes.byteCount) }
    guard !isLast else { throw PipelineError(.truncatedImage, "the image ends before its last row") }
    self.analysis = consume analysis
    return (false, bytes.byteCount)
  }

  private mutating func end(
    _ analysis: consuming ImageAnalysis, _ consumed: Int
  ) throws(PipelineError) -> (isComplete: Bool, consumedByteCount: Int) {
    findings = try analysis.finish()
    stored?.consume(headerByteCount)
    return (true, consumed)
  }
}
