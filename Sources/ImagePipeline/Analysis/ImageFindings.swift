internal import ImageCodecs
internal import ImageKernels

/// A search of an image's pixels that its results need before they can be planned.
struct TrimSearch: Sendable, Hashable {
  let trim: Trim
  /// The part of the stored image to search.
  let columns: Range<Int>
  let rows: Range<Int>
  /// The orientation of the stored image, including the requested rotation and flips.
  let orientation: Orientation

  /// Returns `nil` for a configuration that trims nothing.
  /// - Throws: `invalidField` for a crop beyond the image.
  init?(_ configuration: ProcessingConfiguration, of header: ImageHeader) throws(PipelineError) {
    guard let trim = configuration.trim else { return nil }
    let orientation = PlanDraft.orientation(configuration, of: header)
    let shown = PixelSize(width: header.width, height: header.height).rotated(by: orientation)
    let window = (try configuration.crop?.window(in: shown) ?? Window(shown)).stored(orientation, shown: shown)
    let part = PixelRect(window)
    self.trim = trim
    self.orientation = orientation
    columns = part.x..<part.x + part.width
    rows = part.y..<part.y + part.height
  }
}

/// The findings of a search in the pixels of an image.
struct ImageFindings: Sendable {
  /// Those of the configurations that hide the same areas.
  struct OfSearch: Sendable {
    /// The part of the displayed image that each search has found; `nil` for an image that is all border.
    var trims: [TrimSearch: PixelRect?] = [:]
    /// Where the stored image attracts attention; `nil` if that was not searched.
    var saliency: SaliencyMap?
    /// The faces of the displayed image in its pixels, the largest first, by the orientation with which it is displayed.
    var faces: [Orientation: [PixelRect]] = [:]
  }

  /// The findings by the areas that were hidden meanwhile.
  var bySearch: [[HiddenArea]: OfSearch] = [:]
}

extension TrimSearch {
  /// Returns the part of the displayed image that is left.
  /// - `found`: The part of the stored image that is not border.
  func part(_ found: (columns: Range<Int>, rows: Range<Int>), of stored: PixelSize) -> PixelRect {
    var (columns, rows) = (found.columns, found.rows)
    let swaps = orientation.swapsAxes
    if (swaps ? trim.isEqualVertically : trim.isEqualHorizontally) ?? false {
      columns = Self.equal(columns, in: self.columns)
    }
    if (swaps ? trim.isEqualHorizontally : trim.isEqualVertically) ?? false { rows = Self.equal(rows, in: self.rows) }
    let window = Window(
      x: Double(columns.lowerBound), y: Double(rows.lowerBound), width: Double(columns.count),
      height: Double(rows.count))
    return PixelRect(window.shown(orientation, stored: stored))
  }

  /// Returns a range that lacks as much at both ends of `whole`, the smaller of both.
  private static func equal(_ range: Range<Int>, in whole: Range<Int>) -> Range<Int> {
    let margin = min(range.lowerBound - whole.lowerBound, whole.upperBound - range.upperBound)
    return whole.lowerBound + margin..<whole.upperBound - margin
  }
}

extension ProcessingConfiguration {
  /// Whether the result is planned only after the pixels of the image were searched.
  var needsAnalysis: Bool { trim != nil || choosesBySaliency || hidesFaces }

  /// Returns the areas of the stored image that are hidden where faces are searched: none if these are to be hidden, too, as a
  /// face that is hidden in part would not be found.
  func hiddenAreas(ofFacesIn header: ImageHeader) -> [HiddenArea] {
    hidesFaces ? [] : hiddenAreas(ofSearchIn: header)
  }

  /// Returns the areas of the stored image that other searches do not see: those of all regions but faces.
  func hiddenAreas(ofSearchIn header: ImageHeader) -> [HiddenArea] {
    let orientation = PlanDraft.orientation(self, of: header)
    // An error of a region is found again when the result is planned.
    return (regions ?? []).enumerated().compactMap { index, region in
      let color = region.color
      return region.shape == .faces
        ? nil
        : try? region.hiddenArea(
          index: index, of: header, orientation, fill: [color.red, color.green, color.blue, 255])
    }
  }

  /// Returns this configuration without the fields for which pixels are searched, to plan without decoding.
  /// - Throws: The errors of `checkAnalysis`, which processing the image has, too.
  func withoutAnalysis(of header: ImageHeader) throws(PipelineError) -> ProcessingConfiguration {
    try checkAnalysis(of: header)
    var configuration = self
    configuration.trim = nil
    if configuration.choosesBySaliency { configuration.gravity = .center }
    // Whatever comes of this plan shows no face.
    let everything = Region(area: Crop(unit: .fractions, width: 1, height: 1))
    configuration.regions = regions?.map { $0.shape == .faces ? everything : $0 }
    return configuration
  }

  /// Checks that the pixels of an image can be searched.
  /// - Throws: `unservedField` for frames other than the first image of the file, and without a detector for faces.
  func checkAnalysis(of header: ImageHeader) throws(PipelineError) {
    try checkDetector()
    guard needsAnalysis else { return }
    let isLater = frameIndex.map { $0.value != 0 } ?? false && header.frameCount != 1
    // The search sees the default image, which is none of the frames.
    let skipsDefaultImage = header.hasDefaultImage && (frameIndex != nil || maxFrames ?? 1 != 1)
    guard isLater || skipsDefaultImage else { return }
    let field = frameIndex == nil ? "max_frames" : "frame_index"
    throw PipelineError(
      .unservedField,
      "\(field) is \(frameIndex?.value ?? maxFrames ?? 1), but trim, gravity SMART and FACES, and regions of FACES are "
        + "supported for the first image of the file only; leave one of them unset",
      field: field)
  }
}
