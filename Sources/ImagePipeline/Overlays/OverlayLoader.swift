internal import Fields
internal import ImageCodecs
internal import ImageKernels

/// The decoded overlays of one image and all of its results, each decoded once for each size.
final class OverlayLoader {
  private let images: AuxiliaryImages
  private let limits: ImageLimits
  private let budget: ImageBudget
  private var loaded: [String: [PlannedOverlay.Drawing: OverlayPixels]] = [:]

  init(_ images: AuxiliaryImages, limits: ImageLimits, budget: ImageBudget) {
    self.images = images
    self.limits = limits
    self.budget = budget
  }

  /// Returns the pixels of each overlay of a plan.
  /// - Throws: an error that names the field of the overlay.
  func pixels(of plan: Plan, allowance: WorkAllowance) throws(PipelineError) -> [OverlayPixels] {
    var all: [OverlayPixels] = []
    for overlay in plan.overlays { all.append(try pixels(of: overlay, allowance: allowance)) }
    return all
  }

  private func pixels(
    of overlay: PlannedOverlay, allowance: WorkAllowance
  ) throws(PipelineError) -> OverlayPixels {
    let drawing = overlay.drawing
    if let known = loaded[overlay.image]?[drawing] { return known }
    let pixels: OverlayPixels
    if let style = drawing.text {
      pixels = try textPixels(style, of: overlay, allowance: allowance)
    } else {
      pixels = try imagePixels(of: overlay, allowance: allowance)
    }
    loaded[overlay.image, default: [:]][drawing] = pixels
    return pixels
  }

  private func textPixels(
    _ style: TextStyle, of overlay: PlannedOverlay, allowance: WorkAllowance
  ) throws(PipelineError) -> OverlayPixels {
    // What is drawn has no file.
    let key = OverlayCache.Key(digest: [], drawing: overlay.drawing)
    if let kept = images.cache?.pixels(key) { return kept }
    let pixels = try TextOverlay.pixels(style, overlay, budget: budget, allowance: allowance)
    images.cache?.keep(pixels, as: key)
    return pixels
  }

  private func imagePixels(of overlay: PlannedOverlay, allowance: WorkAllowance) throws(PipelineError) -> OverlayPixels
  {
    let drawing = overlay.drawing
    guard let image = images[overlay.image] else { throw .unknownOverlay(overlay.image, at: overlay.index) }
    let key = image.digest.isEmpty ? nil : OverlayCache.Key(digest: image.digest, drawing: drawing)
    let pixels: OverlayPixels
    if let key, let kept = images.cache?.pixels(key) {
      pixels = kept
    } else {
      let (limits, budget) = (limits, budget)
      do throws(PipelineError) {
        pixels = try image.withBytes { (bytes) throws(PipelineError) in
          try OverlayRows.pixels(bytes, drawing, limits: limits, budget: budget, allowance: allowance)
        }
      } catch { throw PlannedOverlay.error(error, at: overlay.index, overlay.image) }
      if let key { images.cache?.keep(pixels, as: key) }
    }
    return pixels
  }
}

extension ImageReader {
  /// Plans the overlays of a result.
  /// - Parameters:
  ///   - plan: The plan of the result, without its overlays.
  ///   - draft: The draft of the result.
  /// - Returns: The overlays in the order of the request.
  /// - Throws: an error that names the field of the first overlay that cannot be drawn.
  func plannedOverlays(_ plan: Plan, _ draft: PlanDraft) throws(PipelineError) -> [PlannedOverlay] {
    var planned: [PlannedOverlay] = []
    for (index, overlay) in (draft.configuration.overlays ?? []).enumerated() {
      if let text = overlay.text {
        planned.append(try text.planned(in: overlay, at: index, plan, factor: draft.overlayFactor))
        continue
      }
      guard let image = auxiliary[overlay.image] else { throw .unknownOverlay(overlay.image, at: index) }
      do throws(PipelineError) {
        planned.append(
          try image.withBytes { (bytes) throws(PipelineError) in
            try plannedOverlay(overlay, at: index, bytes, plan, factor: draft.overlayFactor)
          })
      } catch { throw PlannedOverlay.error(error, at: index, overlay.image) }
    }
    return planned
  }

  private func plannedOverlay(
    _ overlay: Overlay, at index: Int, _ bytes: RawSpan, _ plan: Plan, factor: Double
  ) throws(PipelineError) -> PlannedOverlay {
    var reader = ImageReader(overlayLimits: limits, budget: budget)
    _ = try reader.readOverlay(bytes)
    guard let header = reader.header else { throw .unfinishedHeader }
    let rotation = overlay.rotation ?? 0
    let stored = PixelSize(width: header.width, height: header.height)
    let shown = stored.rotated(
      by: header.orientation.rotated(quarters: rotation / 90, flipsColumns: false, flipsRows: false))
    let size = try overlay.size(of: shown, on: plan.outputSize, factor: factor)
    let drawing = PlannedOverlay.Drawing(size: size, rotation: rotation, opacity: overlay.opacity ?? 1, on: plan)
    return PlannedOverlay(
      overlay, at: index, drawing, on: plan, factor: factor, decodeByteCount: try reader.overlayByteCount(drawing))
  }

  /// Returns an upper bound of the bytes that decoding this image as an overlay charges, without its pixels.
  private mutating func overlayByteCount(_ drawing: PlannedOverlay.Drawing) throws(PipelineError) -> UInt64 {
    let plan = try plan(PlannedOverlay.decoding(drawing))
    guard let header else { throw .unfinishedHeader }
    let decoding = try withDecoder { (decoder) throws(CodecError) in
      try decoder.estimatedByteCount(scale: plan.decodeScale, toleratesTruncation: false, toleratesDamage: false)
    }
    let stages = OverlayRows(plan).estimatedByteCount(plan.expectedLayout(header))
    let conversion = drawing.profile.isEmpty ? 0 : ColorConversion.estimatedByteCountFromSRGB
    return decoding + UInt64(stages + conversion + Plan.blockOverhead)
  }
}

extension PipelineError {
  static func unknownOverlay(_ name: String, at index: Int) -> PipelineError {
    let field = "overlays[\(index)].image"
    return PipelineError(
      .invalidField,
      "\(field) is \(String(reflecting: name.beginning)); it must be the name of an auxiliary image of the request, "
        + "or of an overlay of the worker", field: field)
  }
}
