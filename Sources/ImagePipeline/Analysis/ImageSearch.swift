internal import ImageCodecs
internal import ImageKernels

/// The search of an image's pixels for the configurations that hide the same areas, which it does not see.
final class ImageSearch {
  /// The configurations for which an image is searched.
  struct Purpose {
    /// Those whose faces are found.
    var faces: [ProcessingConfiguration] = []
    /// Those for which the border or the saliency is found.
    var others: [ProcessingConfiguration] = []
  }

  /// The way from decoded rows to rows of 8-bit gray, RGB or RGBA.
  private enum Conversion {
    case none
    case planes(PlaneMerger)
    case packed(PixelConverter)
  }

  /// The minimum longer side at which an image is decoded to measure saliency.
  private static let minSaliencySide = 192

  let areas: [HiddenArea]
  private let stored: PixelSize
  private let trims: [TrimSearch]
  private let findsSaliency: Bool
  /// The orientations with which the image is displayed where faces are searched.
  private let faceOrientations: Set<Orientation>
  private let faceModel: FaceModel?
  private var mask: RegionMask?
  private var conversion = Conversion.none
  private var finders: [BorderFinder] = []
  private var saliency: SaliencyFinder?
  private var faces: FaceFinder?

  init(_ purpose: Purpose, in header: ImageHeader, hiding areas: [HiddenArea]) {
    // An error of one rendition is found again when it is planned.
    let trims = purpose.others.compactMap { try? TrimSearch($0, of: header) }
    self.trims = trims.indices.filter { !trims[..<$0].contains(trims[$0]) }.map { trims[$0] }
    self.areas = areas
    findsSaliency = purpose.others.contains(where: \.choosesBySaliency)
    faceOrientations = Set(purpose.faces.map { PlanDraft.orientation($0, of: header) })
    faceModel = faceOrientations.isEmpty ? nil : FaceDetection.model
    stored = PixelSize(width: header.width, height: header.height)
  }

  /// The minimum longer side at which the image is decoded; `Int.max` for its full size, which a border needs.
  var minSide: Int { trims.isEmpty ? faceModel?.maxSide ?? Self.minSaliencySide : .max }

  /// Prepares for rows of `layout`.
  func start(_ layout: PixelLayout, budget: ImageBudget) throws(PipelineError) {
    if !areas.isEmpty { mask = try RegionMask(areas, layout: layout, budget: budget) }
    try withCodecErrors { () throws(CodecError) in try startSearches(layout, budget: budget) }
  }

  private func startSearches(_ layout: PixelLayout, budget: ImageBudget) throws(CodecError) {
    let format: PixelFormat =
      switch layout.format {
      case .gray8, .gray16: .gray8
      case .rgb8, .rgb16, .ycc8, .cmyk8: .rgb8
      case .rgba8, .rgba16, .premultipliedRGBA16: .rgba8
      }
    if layout.format == .ycc8 {
      conversion = .planes(try PlaneMerger(layout, doubles: true, budget: budget))
    } else if layout.format != format {
      conversion = .packed(
        try PixelConverter(from: layout.format, to: format, width: layout.planes[0].width, budget: budget))
    }
    let plane = layout.mergedPlane
    if findsSaliency { saliency = SaliencyFinder(width: plane.width, height: plane.height, of: format) }
    if let faceModel {
      faces = try FaceFinder(width: plane.width, height: plane.height, of: format, model: faceModel, budget: budget)
    }
    for search in trims {
      finders.append(
        try BorderFinder(
          columns: search.columns, rows: search.rows, of: format,
          threshold: search.trim.threshold ?? Trim.defaultThreshold,
          color: search.trim.color.map { [$0.red, $0.green, $0.blue] }, budget: budget))
    }
  }

  /// Searches the rows of a decoded strip.
  func push(_ strip: borrowing Strip) throws(PipelineError) {
    guard let mask else { return try search(strip) }
    mask.push(strip)
    try searchMasked(mask)
  }

  /// Searches the rows that the areas have kept, after the last strip.
  func end() throws(PipelineError) {
    guard let mask else { return }
    mask.isFinished = true
    try searchMasked(mask)
  }

  private func searchMasked(_ mask: RegionMask) throws(PipelineError) {
    while try mask.advance() { try search(Strip(format: mask.layout.format, rows: mask.rows)) }
  }

  private func search(_ strip: borrowing Strip) throws(PipelineError) {
    switch conversion {
    case .none: search(strip.plane(0))
    case .packed(let converter):
      for rows in strip.plane(0).portions(of: converter.rowCount) { search(converter.convert(rows)) }
    case .planes(var merger):
      merger.push(strip)
      while true {
        let rows = try withCodecErrors { () throws(CodecError) in try merger.read() }
        if rows.isEmpty { break }
        search(rows)
      }
      conversion = .planes(merger)
    }
  }

  private func search(_ rows: Strip.Rows) {
    for finder in finders { finder.push(rows) }
    saliency?.push(rows)
    faces?.push(rows)
  }

  /// Returns what was found, after all rows were searched.
  /// - Throws: `limitExceeded` if the budget is exhausted.
  func finish() throws(PipelineError) -> ImageFindings.OfSearch {
    var findings = ImageFindings.OfSearch()
    for (search, finder) in zip(trims, finders) {
      findings.trims[search] = .some(finder.finish().map { search.part($0, of: stored) })
    }
    findings.saliency = saliency?.finish()
    guard let faces else { return findings }
    for orientation in faceOrientations {
      let shown = stored.rotated(by: orientation)
      let found = try withCodecErrors { () throws(CodecError) in try faces.faces(orientation) }
      findings.faces[orientation] = found.map { $0.rectangle(in: shown) }
    }
    return findings
  }
}
