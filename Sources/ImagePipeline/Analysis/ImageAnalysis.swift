internal import ImageCodecs
internal import ImageKernels

/// Decodes an image once before it is planned, and searches its pixels.
///
/// It has a decoder of its own, which is released before the image is decoded for its results.
struct ImageAnalysis: ~Copyable {
  private var decoder: Decoder
  /// One for each set of areas that configurations hide.
  private let searches: [ImageSearch]
  private let longerSide: Int
  private let options: (toleratesTruncation: Bool, toleratesDamage: Bool)
  private let allowance: WorkAllowance
  private let budget: ImageBudget
  private var isStarted = false

  /// Creates an analysis of the image with `header`.
  /// - `configurations`: The configurations of the results.
  /// - Throws: The errors of searches and of `checkAnalysis`.
  init(
    _ header: ImageHeader, _ configurations: [ProcessingConfiguration], limits: ImageLimits, budget: ImageBudget,
    allowance: WorkAllowance
  ) throws(PipelineError) {
    for configuration in configurations { try configuration.checkAnalysis(of: header) }
    var purposes: [[HiddenArea]: ImageSearch.Purpose] = [:]
    for configuration in configurations where configuration.needsAnalysis {
      if configuration.trim != nil || configuration.choosesBySaliency {
        purposes[configuration.hiddenAreas(ofSearchIn: header), default: .init()].others.append(configuration)
      }
      guard configuration.findsFaces else { continue }
      purposes[configuration.hiddenAreas(ofFacesIn: header), default: .init()].faces.append(configuration)
    }
    let decoder: Decoder
    do { decoder = try Decoder(format: header.format, limits: limits.codec, budget: budget) } catch {
      throw PipelineError(error)
    }
    searches = purposes.map { ImageSearch($1, in: header, hiding: $0) }
    longerSide = max(header.width, header.height)
    options = (
      configurations.contains { $0.tolerateTruncation ?? false }, configurations.contains { $0.tolerateDamage ?? false }
    )
    self.budget = budget
    self.allowance = allowance
    self.decoder = decoder
  }

  /// Decodes the next bytes.
  /// - Returns: Whether all rows were searched.
  /// - Throws: `corruptImage`, `truncatedImage`, `limitExceeded`, `cancelled`, or another error of the image.
  mutating func push(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Bool {
    var rest = bytes
    if !isStarted {
      do {
        let progress = try decoder.readHeader(rest, isLast: isLast)
        guard progress.value else { return false }
        rest = rest.extracting(droppingFirst: progress.consumedByteCount)
      } catch { throw PipelineError(error) }
      try start()
    }
    while true {
      try allowance.check()
      let event: Decoder.Event
      do {
        let progress = try decoder.read(rest, isLast: isLast)
        rest = rest.extracting(droppingFirst: progress.consumedByteCount)
        event = progress.value
      } catch { throw PipelineError(error) }
      switch event {
      case .needsInput: return false
      case .stripReady:
        try decoder.withStrip { (strip) throws(PipelineError) in
          for search in searches { try search.push(strip) }
        }
      case .frameDone, .done:
        for search in searches { try search.end() }
        return true
      }
    }
  }

  private mutating func start() throws(PipelineError) {
    isStarted = true
    let minSide = searches.map(\.minSide).max() ?? .max
    let scale = minSide == .max ? 8 : decoder.scales.first { longerSide * $0 >= 8 * minSide } ?? 8
    let layout: PixelLayout
    do {
      layout = try decoder.start(
        scale: scale, toleratesTruncation: options.toleratesTruncation, toleratesDamage: options.toleratesDamage)
    } catch { throw PipelineError(error) }
    for search in searches { try search.start(layout, budget: budget) }
  }

  /// Returns what was found, after all rows were searched.
  /// - Throws: `limitExceeded` if the budget is exhausted.
  consuming func finish() throws(PipelineError) -> ImageFindings {
    var findings = ImageFindings()
    for search in searches { findings.bySearch[search.areas] = try search.finish() }
    return findings
  }
}
