internal import ImageCodecs

/// The formats among which the format of a result is chosen once its rows are known, and the similarity at which they are
/// compared.
struct FormatChoice: Sendable, Hashable {
  /// The pixel format of the rows: gray ones are converted for formats that store gray as color.
  let rows: PixelFormat
  /// The options of each format's encoder at the requested quality; at least one.
  let candidates: [EncoderOptions]
  /// The options of the JPEG whose similarity a result must reach; `nil` if the rows have alpha, or no JPEG their size.
  let reference: EncoderOptions?
  /// The similarity that suffices although the reference has a higher one; `nil` if none was requested.
  let targetScore: Double?
  // At most one; an array, as a structure cannot contain itself.
  private var opaqueChoices: [FormatChoice] = []

  /// The choice for rows with alpha that turn out to be opaque: that of rows without it; `nil` for other rows.
  var opaque: FormatChoice? { opaqueChoices.first }

  /// The formats that the result can have.
  var formats: [ImageFormat] {
    let listed = candidates.map(\.format)
    return listed + (opaque?.formats ?? []).filter { !listed.contains($0) }
  }

  /// The options by which the result is planned: those of a candidate, for the rows, whose quality can be lowered if there
  /// is one.
  var carrier: EncoderOptions {
    var options = candidates.first(where: \.isLossy) ?? candidates[0]
    options.pixelFormat = rows
    return options
  }

  /// Lossless WebP, which suits drawings; `nil` if WebP is no candidate.
  var losslessWebP: EncoderOptions? {
    var options = candidates.first { $0.format == .webp && $0.isLossy }
    options?.webp.isLossless = true
    return options
  }

  /// Returns the formats that a result can have, in the order of preference; one unless `auto` is requested.
  /// - `size`: The size of the result; `nil` before it is known. Formats that cannot have it are left out, unless all would be.
  /// - `isAnimation`: Whether the result may have several frames.
  /// - `hasAlpha`: Whether pixels may be transparent.
  static func formats(
    header: ImageHeader, configuration: ProcessingConfiguration, size: PixelSize?, isAnimation: Bool, hasAlpha: Bool
  ) -> [ImageFormat] {
    let accepted = (configuration.accept ?? .standard).formats.filter(\.isEncodable)
    func stores(_ format: ImageFormat) -> Bool {
      size.map { format.stores($0, header.colorFormat(isDeep: false)) } ?? true
    }
    let animated = [.webp, .gif, .png].filter { accepted.contains($0) && $0.storesFrames }
    if isAnimation, let format = animated.first(where: stores) ?? animated.first { return [format] }
    // Formats with alpha serve all images; a GIF is never the smallest good one.
    let formats = AcceptedFormats.all.filter { accepted.contains($0) && $0 != .gif }
    let usable = hasAlpha ? formats.filter { $0.takes(.rgba8) } : formats
    let served = usable.isEmpty ? formats : usable
    let stored = served.filter(stores)
    let listed = stored.isEmpty ? served : stored
    return listed.isEmpty ? [accepted.contains(.gif) ? .gif : hasAlpha ? .png : .jpeg] : listed
  }

  /// Creates the choice that a configuration requests; returns `nil` if there is nothing to choose.
  /// - Parameters:
  ///   - draft: The draft of the result.
  ///   - header: The header of the image.
  ///   - frames: The frames that the result contains.
  ///   - formats: The formats that the result can have.
  ///   - passesRows: Whether gray rows stay gray.
  /// - Throws: The errors of `Plan.encoder`.
  init?(
    _ draft: PlanDraft, of header: ImageHeader, _ frames: FrameSelection, formats: [ImageFormat], passesRows: Bool
  ) throws(PipelineError) {
    guard draft.configuration.preferredFormat == .auto, !frames.isAnimation else { return nil }
    let opaqueFormats =
      header.hasAlpha
      ? Self.formats(
        header: header, configuration: draft.configuration, size: draft.framing.canvasSize, isAnimation: false,
        hasAlpha: false) : []
    guard max(formats.count, opaqueFormats.count) > 1 else { return nil }
    let (isGray, colorFormat) = (passesRows && header.isGray, header.colorFormat(isDeep: false))
    try self.init(draft, header, formats, colorFormat, isGray: isGray)
    if header.hasAlpha {
      opaqueChoices = [try FormatChoice(draft, header, opaqueFormats, .rgb8, isGray: false)]
    }
  }

  /// - `colorFormat`: The pixel format of rows in color.
  /// - `isGray`: Whether the rows are gray.
  private init(
    _ draft: PlanDraft, _ header: ImageHeader, _ formats: [ImageFormat], _ colorFormat: PixelFormat, isGray: Bool
  ) throws(PipelineError) {
    let configuration = draft.configuration
    var plain = configuration
    plain.targetSimilarity = nil
    func options(_ format: ImageFormat) throws(PipelineError) -> EncoderOptions {
      let pixelFormat = isGray && format.takes(.gray8) ? .gray8 : colorFormat
      var options = try Plan.encoder(
        header: header, format: format, outputSize: draft.framing.canvasSize, configuration: plain,
        colorFormat: pixelFormat)
      options.pixelFormat = pixelFormat
      options.apply(configuration.autoEffort ?? .medium, configuration)
      return options
    }
    candidates = try formats.map { (format) throws(PipelineError) in try options(format) }
    targetScore = configuration.targetSimilarity
    rows = isGray ? .gray8 : colorFormat
    let hasReference = !colorFormat.hasAlpha && ImageFormat.jpeg.stores(draft.framing.canvasSize, colorFormat)
    reference = hasReference ? try options(.jpeg) : nil
  }
}

extension ImageFormat {
  /// Whether an image can have this size in the format.
  fileprivate func stores(_ size: PixelSize, _ pixelFormat: PixelFormat) -> Bool {
    let options = EncoderOptions(
      format: self, width: size.width, height: size.height, pixelFormat: takes(pixelFormat) ? pixelFormat : .rgb8,
      subsampling: .full, quality: 100)
    return (try? options.estimatedByteCount()) != nil
  }
}
