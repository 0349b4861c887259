internal import ImageCodecs
internal import ImageKernels

extension Region {
  /// Returns the area of the stored image that this region hides.
  ///
  /// It is rounded outward to whole pixels, and extended as the format requires: see `Margin`.
  /// - Parameters:
  ///   - index: The index of the region, for error messages.
  ///   - header: The header of the image.
  ///   - orientation: The orientation of the stored image, including the requested rotation and flips.
  ///   - fill: A pixel of `fill` in the colors of the image.
  /// - Returns: The area, which has at least one pixel.
  /// - Throws: `invalidField` for a region outside the image; `internalDefect` for faces, which are areas by now.
  func hiddenArea(
    index: Int, of header: ImageHeader, _ orientation: Orientation, fill: [UInt8]
  ) throws(PipelineError) -> HiddenArea {
    let stored = PixelSize(width: header.width, height: header.height)
    let shown = stored.rotated(by: orientation)
    guard let area, shape != .faces else { throw Self.unsearched }
    let window = Self.window(area, shown).stored(orientation, shown: shown)
    let margin = Margin(header)
    let ellipse: HiddenArea.Ellipse? =
      switch shape {
      case .rectangle, .faces: nil
      case .ellipse:
        HiddenArea.Ellipse(
          centerX: window.x + window.width / 2, centerY: window.y + window.height / 2,
          radiusX: window.width / 2 + Double(margin.pixelCount), radiusY: window.height / 2 + Double(margin.pixelCount))
      }
    let effect: HiddenArea.Effect =
      switch effect {
      case .blur: .blur
      case .pixelate: .pixelate
      case .fill: .fill(fill)
      }
    let columns = margin.extended(window.x, window.width, to: margin.grid.across, in: stored.width)
    let rows = margin.extended(window.y, window.height, to: margin.grid.down, in: stored.height)
    guard !columns.isEmpty, !rows.isEmpty, window.x < Double(stored.width), window.y < Double(stored.height),
      window.x + window.width > 0, window.y + window.height > 0
    else {
      throw PipelineError(
        .invalidField,
        "regions[\(index)].area begins at \(area.x), \(area.y) in \(area.unit.rawValue), which is outside the image of "
          + "\(shown)", field: "regions[\(index)].area")
    }
    return HiddenArea(columns: columns, rows: rows, ellipse: ellipse, grid: margin.grid, effect: effect)
  }

  private static let unsearched = PipelineError(
    .internalDefect, "an image was planned without a search for the faces to hide")

  /// Returns the regions that this one stands for: itself, or one for each face.
  /// - `faces`: The faces of the displayed image; `nil` if they were not searched.
  /// - Throws: `internalDefect` if they should have been.
  fileprivate func resolved(_ faces: [PixelRect]?) throws(PipelineError) -> [Region] {
    guard shape == .faces else { return [self] }
    guard let faces else { throw Self.unsearched }
    return faces.map { Region(shape: .rectangle, area: $0.hidingFace, effect: effect, color: color) }
  }

  /// Returns the position of an area in a displayed image of `size`, whose edges it may exceed.
  private static func window(_ area: Crop, _ size: PixelSize) -> Window {
    let (across, down): (Double, Double) =
      switch area.unit {
      case .pixels: (1, 1)
      case .fractions: (Double(size.width), Double(size.height))
      }
    // Numbers of any size become pixels.
    func bounded(_ value: Double) -> Double { min(value, Double(1 << 30)) }
    return Window(
      x: bounded(area.x * across), y: bounded(area.y * down), width: bounded(area.width * across),
      height: bounded(area.height * down))
  }
}

/// The pixels around a hidden area that a decoder may have mixed with those in it.
private struct Margin {
  /// The number of pixels on each side.
  let pixelCount: Int
  /// The blocks to whose edges an area is then extended.
  let grid: HiddenArea.Grid

  init(_ header: ImageHeader) {
    let sampling = header.chromaSampling.map { (across: $0.across, down: $0.down) }
    switch header.format {
    case .jpeg:
      // Blocks are coded by themselves. Those of subsampled chroma show more pixels; assume the largest if it is unknown.
      let (isGray, isPlanar) = (header.colorSpace == .gray, header.colorSpace == .ycbcr)
      let (width, height) = sampling ?? (isGray ? (1, 1) : (4, 4))
      pixelCount = 1
      // A decoder that enlarges chroma itself mixes that of neighboring blocks, also at an eighth of the size.
      grid = HiddenArea.Grid(across: 8 * width, down: 8 * height, overhang: isGray || isPlanar ? 0 : 8)
    case .tiff:
      // Blocks of JPEG begin with each strip or tile, wherever that is.
      let block = sampling.map { 8 * max($0.across, $0.down) } ?? 0
      (pixelCount, grid) = (block + 8, HiddenArea.Grid())
    case .webp, .avif, .heic, .jxl, .jpeg2000:
      // Filters that smooth the edges of blocks reach so far.
      (pixelCount, grid) = (8, HiddenArea.Grid())
    case .png, .gif, .bmp, .tga, .psd, .pnm, .hdr, .ico, .qoi, .raw:
      (pixelCount, grid) = (1, HiddenArea.Grid())
    }
  }

  /// Returns a span with the margin, extended to blocks of `side` pixels, as far as it is in the image.
  func extended(_ start: Double, _ length: Double, to side: Int, in count: Int) -> Range<Int> {
    let first = Int(start.rounded(.down)) - pixelCount
    let end = Int((start + length).rounded(.up)) + pixelCount
    let lower = min(max(0, max(0, first) / side * side - grid.overhang), count)
    return lower..<max(lower, min((max(0, end) + side - 1) / side * side + grid.overhang, count))
  }
}

extension Color {
  /// Gray of the same luma.
  fileprivate var gray: Color {
    let luma = PixelConverter.luma([red, green, blue])
    return Color(red: luma, green: luma, blue: luma)
  }
}

extension Plan {
  /// Returns the areas of the stored image that a draft hides, in their order.
  /// - `keepsHDR`: Whether the result keeps PQ or HLG.
  static func hiddenAreas(
    _ draft: PlanDraft, of header: ImageHeader, _ frames: FrameSelection, _ attachments: ImageAttachments,
    keepsHDR: Bool
  ) throws(PipelineError) -> [HiddenArea] {
    if draft.configuration.hidesFaces, frames.isAnimation { throw movingFaces }
    var areas: [HiddenArea] = []
    for (index, region) in (draft.configuration.regions ?? []).enumerated() {
      // Areas are filled before colors are converted.
      let fill = attachments.pixel(
        of: header.isGray ? region.color.gray : region.color, attachments.profile,
        isForGray: header.colorSpace == .gray, isHDR: keepsHDR)
      for region in try region.resolved(draft.faces) {
        areas.append(try region.hiddenArea(index: index, of: header, draft.orientation, fill: fill))
      }
    }
    return areas
  }

  private static let movingFaces = PipelineError(
    .unservedField,
    "a region has the shape FACES, but the result has several frames, and faces are found in the first one only; leave "
      + "max_frames unset, or set it to 1", field: "regions")

  /// The rectangles around what was hidden, in pixels of the displayed image.
  var hiddenRegions: [PixelRect] {
    hidden.map { area in
      let window = Window(
        x: Double(area.columns.lowerBound), y: Double(area.rows.lowerBound), width: Double(area.columns.count),
        height: Double(area.rows.count))
      return PixelRect(window.shown(orientation, stored: storedSize))
    }
  }
}

extension Window {
  /// Returns the position of this window of the stored image in the displayed one, given the size of the stored image.
  func shown(_ orientation: Orientation, stored size: PixelSize) -> Window {
    let firstX = orientation.reversesColumns ? Double(size.width) - x - width : x
    let firstY = orientation.reversesRows ? Double(size.height) - y - height : y
    return orientation.swapsAxes
      ? Window(x: firstY, y: firstX, width: height, height: width)
      : Window(x: firstX, y: firstY, width: width, height: height)
  }
}
