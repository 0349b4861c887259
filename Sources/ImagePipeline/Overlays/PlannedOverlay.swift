internal import Fields
internal import ImageCodecs
internal import ImageKernels

/// All decisions for one overlay of a result, made before decoding starts.
struct PlannedOverlay: Sendable, Hashable {
  /// All that the pixels of the overlay depend on, other than the image's file.
  struct Drawing: Sendable, Hashable {
    /// The text; `nil` for an image.
    var text: TextStyle?
    /// The size at which the overlay is drawn, after its rotation, in pixels.
    let size: PixelSize
    let rotation: Int
    let opacity: Double
    /// The color space of the result: sRGB or Display P3.
    let colorSpace: ColorSpacePolicy
    /// The profile of the result if it is another one; otherwise empty.
    let profile: [UInt8]
  }

  /// The place in the list of overlays.
  let index: Int
  /// The name of the image; empty for a text.
  let image: String
  let drawing: Drawing
  let blend: OverlayBlend
  /// The left edge in pixels of the result; negative if a part of the overlay lies outside.
  let left: Int
  /// The top edge in pixels of the result.
  let top: Int
  /// Whether the overlay is repeated over the whole result.
  let isTiled: Bool
  /// The size of the result in pixels.
  let canvas: PixelSize
  /// An upper bound of the bytes that decoding the image, or drawing the text, charges, without its pixels.
  let decodeByteCount: UInt64

  /// The size of the decoded pixels in bytes.
  var byteCount: Int { OverlayPixels.byteCount(width: drawing.size.width, height: drawing.size.height) }

  /// The rows of the result that the overlay covers.
  var rows: Range<Int> {
    if isTiled { return 0..<canvas.height }
    guard left < canvas.width, left + drawing.size.width > 0 else { return 0..<0 }
    let first = min(max(0, top), canvas.height)
    return first..<max(first, min(canvas.height, top + drawing.size.height))
  }

  /// The number of pixels that are written to draw the overlay and to bring it to its size.
  ///
  /// Tiles are drawn one by one, so those of few columns count more.
  var workPixelCount: UInt64 {
    let drawn = UInt64(rows.count) * UInt64(canvas.width)
    return drawn * UInt64(isTiled ? max(1, 32 / drawing.size.width) : 1) + UInt64(drawing.size.pixelCount)
  }

  /// Returns the configuration with which the image is decoded.
  static func decoding(_ drawing: Drawing) -> ProcessingConfiguration {
    ProcessingConfiguration(
      maxWidth: drawing.size.width, maxHeight: drawing.size.height, preferredFormat: .png, resizeMode: .stretch,
      allowUpscale: true, rotation: drawing.rotation, alwaysEncode: true, colorSpace: drawing.colorSpace)
  }

  /// Returns an error of an image as that of the overlay at `index`.
  static func error(_ error: PipelineError, at index: Int, _ name: String) -> PipelineError {
    let field = "overlays[\(index)].image"
    let message = "\(field) is \(String(reflecting: name.beginning)): \(error.message)"
    switch error.code {
    case .invalidField, .unservedField, .unknownPreset, .emptyImage, .unknownFormat, .unsupportedImage, .corruptImage,
      .truncatedImage:
      return PipelineError(.invalidField, message, field: field)
    case .limitExceeded: return PipelineError(.limitExceeded, message, field: field, limit: error.limit)
    case .overloaded, .uploadStalled, .cancelled, .codecCrashed, .codecStopped, .internalDefect: return error
    }
  }
}

extension PlannedOverlay {
  /// Creates the plan of an overlay from what is known of its pixels.
  init(
    _ overlay: Overlay, at index: Int, _ drawing: Drawing, on plan: Plan, factor: Double, decodeByteCount: UInt64
  ) {
    let (left, top) = overlay.position(drawing.size, on: plan.outputSize, factor: factor)
    self.init(
      index: index, image: overlay.image, drawing: drawing, blend: overlay.blend ?? .over, left: left, top: top,
      isTiled: overlay.tile ?? false, canvas: plan.outputSize, decodeByteCount: decodeByteCount)
  }
}

extension PlannedOverlay.Drawing {
  /// Creates a drawing in the colors of a plan.
  init(size: PixelSize, rotation: Int, opacity: Double, on plan: Plan) {
    self.init(
      size: size, rotation: rotation, opacity: opacity,
      colorSpace: plan.color.gamut == .displayP3 ? .displayP3 : .srgb,
      profile: plan.color.gamut == .other ? plan.encoder.metadata.profile : [])
  }
}

extension Overlay {
  /// Returns the size at which an image is drawn.
  /// - Parameters:
  ///   - shown: The size of the image after its rotation.
  ///   - canvas: The size of the result.
  ///   - factor: The size of the result compared with that of the request, below 1 for previews.
  /// - Returns: The size in pixels of the result.
  /// - Throws: `limitExceeded` for a side that no result has.
  func size(of shown: PixelSize, on canvas: PixelSize, factor: Double) throws(PipelineError) -> PixelSize {
    let aspect = Double(shown.height) / Double(shown.width)
    let sides: (width: Double, height: Double) =
      switch (scale, width.map { Double($0) * factor }, height.map { Double($0) * factor }) {
      case (let scale?, _, _): (scale * Double(canvas.width), scale * Double(canvas.width) * aspect)
      case (nil, let width?, let height?): (width, height)
      case (nil, let width?, nil): (width, width * aspect)
      case (nil, nil, let height?): (height / aspect, height)
      case (nil, nil, nil): (Double(shown.width) * factor, Double(shown.height) * factor)
      }
    let limit = ProcessingConfiguration.maxBound
    let longest = max(sides.width, sides.height)
    guard longest <= Double(limit) else {
      throw PipelineError(
        exceeding: "max_overlay_side", limit: UInt64(limit), value: UInt64(min(longest, 1e15)), unit: "pixels per side")
    }
    return PixelSize(width: max(1, Int(sides.width.rounded())), height: max(1, Int(sides.height.rounded())))
  }

  /// Returns the position of an overlay of `size` on the result.
  func position(_ size: PixelSize, on canvas: PixelSize, factor: Double) -> (left: Int, top: Int) {
    let gravity = gravity ?? .center
    func start(_ share: Double, _ offset: Double, _ length: Int, in whole: Int) -> Int {
      let distance = unit == .pixels ? offset * factor : offset * Double(whole)
      let free = Double(whole - length)
      return Int((free * share + (share == 1 ? -distance : distance)).rounded(.toNearestOrAwayFromZero))
    }
    return (
      start(gravity.x, x, size.width, in: canvas.width), start(gravity.y, y, size.height, in: canvas.height)
    )
  }
}
