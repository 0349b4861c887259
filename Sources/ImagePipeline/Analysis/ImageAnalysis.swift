internal import ImageCodecs
internal import ImageKernels

/// Decodes an image once before it is planned, and searches its pixels.
///
/// It has a decoder of its own, which is released before the image is decoded for its results.
struct ImageAnalysis: ~Copyable {
  /// The way from decoded rows to rows of 8-bit gray, RGB or RGBA.
  private enum Conversion {
    case none
    case planes(PlaneMerger)
    case packed(PixelConverter)
  }

  private var decoder: Decoder
  private let stored: PixelSize
  private let searches: [TrimSearch]
  private let findsSaliency: Bool
  /// The orientations with which the image is displayed where faces are searched.
  private let faceOrientations: Set<Orientation>
  private let faceModel: FaceModel?
  private let options: (toleratesTruncation: Bool, toleratesDamage: Bool)
  private let allowance: WorkAllowance
  private let budget: ImageBudget
  private var conversion: Conversion?
  private var finders: [BorderFinder] = []
  private var saliency: SaliencyFinder?
  private var faces: FaceFinder?

  /// The minimum longer side at which an image is decoded to measure saliency.
  private static let minSaliencySide = 192

  /// The minimum longer side at which an image is decoded if no border is searched.
  private var minSide: Int { faceModel?.maxSide ?? Self.minSaliencySide }

  /// Creates an analysis of the image with `header`.
  /// - `configurations`: The configurations of the results.
  /// - Throws: The errors of searches and of `checkAnalysis`.
  init(
    _ header: ImageHeader, _ configurations: [ProcessingConfiguration], limits: ImageLimits, budget: ImageBudget,
    allowance: WorkAllowance
  ) throws(PipelineError) {
    var searches: [TrimSearch] = []
    for configuration in configurations {
      try configuration.checkAnalysis(of: header)
      // An error of one rendition is found again when it is planned.
      if let search = try? TrimSearch(configuration, of: header), !searches.contains(search) { searches.append(search) }
    }
    let decoder: Decoder
    do { decoder = try Decoder(format: header.format, limits: limits.codec, budget: budget) } catch {
      throw PipelineError(error)
    }
    self.searches = searches
    findsSaliency = configurations.contains(where: \.choosesBySaliency)
    faceOrientations = Set(
      configurations.filter(\.findsFaces).map { PlanDraft.orientation($0, of: header) })
    faceModel = faceOrientations.isEmpty ? nil : FaceDetection.model
    stored = PixelSize(width: header.width, height: header.height)
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
    if conversion == nil {
      do {
        let progress = try decoder.readHeader(rest, isLast: isLast)
        guard progress.value else { return false }
        rest = rest.extracting(droppingFirst: progress.consumedByteCount)
        try start()
      } catch { throw PipelineError(error) }
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
      case .stripReady: try search()
      case .frameDone, .done: return true
      }
    }
  }

  private mutating func start() throws(CodecError) {
    // A border is found at the full size only.
    let longer = max(stored.width, stored.height)
    let scale = searches.isEmpty ? decoder.scales.first { longer * $0 >= 8 * minSide } ?? 8 : 8
    let layout = try decoder.start(
      scale: scale, toleratesTruncation: options.toleratesTruncation, toleratesDamage: options.toleratesDamage)
    let format: PixelFormat =
      switch layout.format {
      case .gray8, .gray16: .gray8
      case .rgb8, .rgb16, .ycc8, .cmyk8: .rgb8
      case .rgba8, .rgba16, .premultipliedRGBA16: .rgba8
      }
    let budget = budget
    if layout.format == .ycc8 {
      conversion = .planes(try PlaneMerger(layout, doubles: true, budget: budget))
    } else if layout.format == format {
      conversion = Conversion.none
    } else {
      conversion = .packed(
        try PixelConverter(from: layout.format, to: format, width: layout.planes[0].width, budget: budget))
    }
    let plane = layout.mergedPlane
    if findsSaliency { saliency = SaliencyFinder(width: plane.width, height: plane.height, of: format) }
    if let faceModel {
      faces = try FaceFinder(width: plane.width, height: plane.height, of: format, model: faceModel, budget: budget)
    }
    for search in searches {
      finders.append(
        try BorderFinder(
          columns: search.columns, rows: search.rows, of: format,
          threshold: search.trim.threshold ?? Trim.defaultThreshold,
          color: search.trim.color.map { [$0.red, $0.green, $0.blue] }, budget: budget))
    }
  }

  /// Searches the rows of a decoded strip.
  private mutating func search() throws(PipelineError) {
    let (finders, saliency, faces) = (finders, saliency, faces)
    func push(_ rows: Strip.Rows) {
      for finder in finders { finder.push(rows) }
      saliency?.push(rows)
      faces?.push(rows)
    }
    var conversion = conversion
    try decoder.withStrip { (strip) throws(PipelineError) in
      switch conversion {
      case nil, Conversion.none?: push(strip.plane(0))
      case .packed(let converter)?:
        for rows in strip.plane(0).portions(of: converter.rowCount) { push(converter.convert(rows)) }
      case .planes(var merger)?:
        merger.push(strip)
        while true {
          let rows = try withCodecErrors { () throws(CodecError) in try merger.read() }
          if rows.isEmpty { break }
          push(rows)
        }
        conversion = .planes(merger)
      }
    }
    self.conversion = conversion
  }

  /// Returns what was found, after all rows were searched.
  /// - Throws: `limitExceeded` if the budget is exhausted.
  consuming func finish() throws(PipelineError) -> ImageFindings {
    var findings = ImageFindings()
    for (search, finder) in zip(searches, finders) {
      findings.trims[search] = .some(finder.finish().map { search.part($0, of: stored) })
    }
    findings.saliency = saliency?.finish()
    if let faces {
      for orientation in faceOrientations {
        let shown = stored.rotated(by: orientation)
        let found = try withCodecErrors { () throws(CodecError) in try faces.faces(orientation) }
        findings.faces[orientation] = found.map { $0.rectangle(in: shown) }
      }
    }
    return findings
  }
}
