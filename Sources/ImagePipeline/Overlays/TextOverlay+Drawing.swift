internal import ImageCodecs
internal import ImageKernels
internal import Synchronization

extension TextOverlay {
  /// The libraries that texts are drawn with, and their versions; none in a build without texts.
  package static var libraries: [(name: String, version: String)] { TextFonts.libraries }
  /// Whether this build draws texts.
  package static var isSupported: Bool { TextFonts.isSupported }

  /// The directory of additional fonts; must be set before the first text is drawn.
  private static let directory = Mutex<String?>(nil)

  /// The fonts of this process, loaded when they are first used; `nil` if there are none.
  static let fonts = TextFonts(directory: directory.withLock { $0 })

  /// Lets texts use the fonts of a directory, too; must be called before the first text is drawn.
  package static func addFonts(ofDirectory path: String) { directory.withLock { $0 = path } }

  /// Loads the fonts, and all else that texts need of files, for a process that can open none later.
  package static func prepare() {
    // Thai needs a dictionary to be broken into lines.
    let style = TextStyle(text: "A \u{e01}\u{e32} \u{5d0}", font: defaultFont, size: 8, maxWidth: 8)
    _ = try? fonts?.pixels(style, opacity: 1) { false }
  }

  /// Plans a text.
  /// - Parameters:
  ///   - overlay: The overlay with this text.
  ///   - index: Its place in the list of overlays.
  ///   - plan: The plan of the result, without its overlays.
  ///   - factor: The size of the result compared with that of the request, below 1 for previews.
  /// - Returns: The plan of the overlay.
  /// - Throws: an error that names the field of the overlay.
  func planned(
    in overlay: Overlay, at index: Int, _ plan: Plan, factor: Double
  ) throws(PipelineError) -> PlannedOverlay {
    let rotation = overlay.rotation ?? 0
    let style = style(on: plan.outputSize, rotation: rotation, factor: factor)
    let size: PixelSize
    do throws(TextError) {
      guard let fonts = Self.fonts else { throw .unknownFamily }
      let (width, height) = try fonts.size(of: style)
      size = PixelSize(width: width, height: height)
    } catch { throw Self.error(error, style, at: index) }
    var drawing = PlannedOverlay.Drawing(size: size, rotation: rotation, opacity: overlay.opacity ?? 1, on: plan)
    drawing.text = style
    let conversion = drawing.textProfile.isEmpty ? 0 : ColorConversion.estimatedByteCountFromSRGB
    return PlannedOverlay(
      overlay, at: index, drawing, on: plan, factor: factor,
      decodeByteCount: UInt64(TextStyle.overheadByteCount + conversion))
  }

  /// Draws a text.
  /// - Parameters:
  ///   - style: The text.
  ///   - overlay: Its overlay.
  ///   - budget: The budget of the image on which it is drawn.
  ///   - allowance: Checked for each letter.
  /// - Returns: The pixels, which are charged for as long as the image lives.
  /// - Throws: an error that names the field of the overlay; the errors of `WorkAllowance.check`.
  static func pixels(
    _ style: TextStyle, _ overlay: PlannedOverlay, budget: ImageBudget, allowance: WorkAllowance
  ) throws(PipelineError) -> OverlayPixels {
    guard let fonts else { throw error(.unknownFamily, style, at: overlay.index) }
    let drawing = overlay.drawing
    let drawn = try withCodecErrors { () throws(CodecError) in
      try budget.charge(overlay.byteCount)
      return try budget.charge(TextStyle.overheadByteCount) {
        Result { () throws(TextError) in
          try fonts.pixels(style, opacity: drawing.opacity) { (try? allowance.check()) == nil }
        }
      }
    }
    var pixels: OverlayPixels
    do throws(TextError) { pixels = try drawn.get() } catch {
      if error == .interrupted { try allowance.check() }
      throw Self.error(error, style, at: overlay.index)
    }
    if !drawing.textProfile.isEmpty { pixels.convertColors(to: drawing.textProfile, budget: budget) }
    return pixels
  }

  private static func error(_ error: TextError, _ style: TextStyle, at index: Int) -> PipelineError {
    let path = "overlays[\(index)].text"
    let font = "\(path).font is \(String(reflecting: String(style.font.prefix(64))))"
    switch error {
    case .unknownFamily:
      let families = (fonts?.families ?? []).prefix(8).joined(separator: ", ")
      let known = families.isEmpty ? "this worker has no fonts" : "this worker has \(families), ..."
      return PipelineError(
        .invalidField, "\(font); it must be a family of fonts, followed by a style or not: \(known)",
        field: "\(path).font")
    case .invalidFont:
      return PipelineError(
        .invalidField,
        "\(font); it must be a family and a style, without variations; the size of letters is text.size",
        field: "\(path).font")
    case .tooLarge(let width, let height):
      var exceeded = PipelineError(
        exceeding: "max_text_side", limit: UInt64(TextStyle.maxSide), value: UInt64(max(width, height)),
        unit: "pixels for a side of a text")
      exceeded.field = path
      exceeded.message = "\(path): \(exceeded.message)"
      return exceeded
    case .interrupted: return .cancelled
    case .failed:
      return PipelineError(.overloaded, "the host has no memory for the text of \(path); try again later", field: path)
    }
  }
}

extension PlannedOverlay.Drawing {
  /// The profile to whose colors those of a text are converted; empty for sRGB.
  fileprivate var textProfile: [UInt8] {
    colorSpace == .displayP3 ? ColorTarget.displayP3.compactProfile : profile
  }
}
