internal import ImageCodecs
internal import ImageKernels

/// All decisions for one rendition of an image, made before decoding starts.
package struct Plan: Sendable, Hashable {
  /// The minimum ratio of an image decoded at N/8 to the target, on both axes.
  ///
  /// The values are measured; see Benchmarks/results/shrink-on-load.md. The low-pass of the reduced transform is
  /// coarse. At 1.5 times the target size, the compression of the result hides its errors, except at high quality. A
  /// result of high quality also has full-resolution chroma, while the chroma of the image may have half the
  /// resolution.
  static func minResidual(quality: Double) -> Double { quality >= 0.9 ? 2.5 : 1.5 }

  /// The minimum reduction from window to result at which block edges are not visible.
  ///
  /// The values are measured; see Benchmarks/results/webp.md.
  private static func minHidingReduction(quality: Double) -> Double { quality >= 0.9 ? 8 : 4 }

  /// The maximum side of the image and of the result in pixels, given by how the resampler counts samples.
  static let maxSide = 1 << 26
  /// The maximum side in pixels of a result to which area filters are applied.
  static let maxFilteredSide = 1 << 20

  /// The properties of the image.
  package internal(set) var input: ImageInfo
  /// The size of the stored image in pixels, before orientation.
  package let storedSize: PixelSize
  /// The orientation of the stored image, including the requested rotation and flips.
  let orientation: Orientation
  /// The part of the displayed image to use, and its position in the result.
  package let framing: Framing
  /// The part of the stored image to use, in its pixels.
  var storedWindow: Window { framing.window.stored(orientation, shown: storedSize.rotated(by: orientation)) }
  /// The part of the stored image that the result depends on; see `Framing`.
  var storedSource: Window { framing.source.stored(orientation, shown: storedSize.rotated(by: orientation)) }
  /// The size of the result in pixels, as displayed.
  package var outputSize: PixelSize { framing.canvasSize }
  /// The scale N at which the image is decoded, as N/8 of its size.
  package let decodeScale: Int
  /// The kernel with which the image is reduced and enlarged.
  let kernel: ResamplingKernel
  /// The arithmetic with which the image is resized.
  let resampling: Resampling
  /// The frames of the image that the result contains.
  let frames: FrameSelection
  let encoder: EncoderOptions
  /// The maximum size of the result in bytes, the similarity that it must reach, and the ways to reach them; `nil` if
  /// the first result is final.
  let byteLimit: ByteLimit?
  /// The rule that the result has no more bytes than the image; `nil` if it does not apply.
  let neverLarger: NeverLarger?
  /// The change of a request that makes a result smaller than its image, for a warning; `nil` without one.
  let sizeRemedy: String?
  /// The color behind transparent pixels, if the result has no alpha, and of the padding.
  package let background: Color
  /// The color space of the result.
  let color: ColorPlan
  /// Whether a truncated image is delivered as far as it goes.
  let toleratesTruncation: Bool
  /// Whether a damaged image is delivered as far as it can be decoded.
  let toleratesDamage: Bool
  /// Whether the reduction hides block edges, so that the decoder may skip its smoothing.
  let hidesBlocks: Bool
  /// Whether the result keeps artist and copyright that follow the image data in the file; not with regions, as what is
  /// found there is not limited in size, and could be an image.
  let keepsCopyright: Bool
  /// The areas of the stored image that are hidden before all other stages, in their order.
  let hidden: [HiddenArea]
  /// The filters to apply to the result's rows; empty if there are none.
  package let filters: FilterChain
  /// Whether overlays are drawn on the result.
  let hasOverlays: Bool
  /// The overlays, in the order in which they are drawn.
  private(set) var overlays: [PlannedOverlay] = []
  /// Whether stages between the resize and the encoder change pixels; such an image is never passed through.
  let changesPixels: Bool
  /// The input format of the filters: RGB, with alpha if the image has it; without filters, the input format of the
  /// encoder.
  let filterFormat: PixelFormat
  /// The pixel format in which colors are converted: CMYK, or the input format of the filters at the bit depth
  /// of the image.
  let profileFormat: PixelFormat
  /// The place at which facts are gathered; `nil` if they are not requested.
  let factsPlace: FactsPlace?
  /// An upper bound of the bytes that the color conversion charges; 0 without a conversion.
  let conversionByteCount: Int
  /// An upper bound of the bytes that the image charges to its budget; see `Plan+WorkingSet.swift`.
  package internal(set) var workingSetByteCount: UInt64 = 0
  /// The way in which the result is produced: by decoding, or by passthrough.
  package internal(set) var passthrough: Passthrough = .decoded
  /// The scale, in eighths, at which an image that is passed through is also decoded, to verify that this is possible.
  ///
  /// It is `nil` for an image that is not copied, or whose decoder would exceed the memory limit.
  var trialScale: Int?
  /// The part of the displayed image that was chosen by its pixels; `nil` if none was.
  let crop: PixelRect?
  /// The faces that were found, in pixels of the displayed image, the largest first.
  let faces: [PixelRect]
  /// The gain map that the result contains; `nil` without one.
  var gainMap: GainMapPlan?
  /// Warnings about the configuration, for the report.
  var warnings: [Warning]
  /// Warnings about the file that its header gives cause for; the decoder may add others.
  let headerWarnings: [Warning]

  /// The warnings of the report that are known in advance.
  package var knownWarnings: [Warning] { warnings + headerWarnings }
  /// The properties of the result, as far as they are known in advance.
  package var outputInfo: ImageInfo { ImageInfo(self) }
  /// The extensions that the result's file name can have, without the dot: several if its rows decide its format.
  package var fileExtensions: [String] {
    (byteLimit?.choice?.formats ?? [encoder.format]).map {
      $0.traits.output?.fileExtension ?? $0.rawValue
    }
  }
  /// Whether rows that a frame has in common with the frame before it need not pass through the stages: each row of the
  /// result depends on rows at its place alone, and the encoder has those of the frame before.
  var repeatsRows: Bool {
    frames.isAnimation && byteLimit == nil && !changesPixels && hidden.isEmpty && orientation == .up
      && factsPlace == nil && !toleratesTruncation && !toleratesDamage
  }
  /// Whether a library decodes or encodes on threads of its own.
  var usesLibraryThreads: Bool {
    [ImageFormat(rawValue: input.format), encoder.format].contains { $0?.traits.usesLibraryThreads ?? false }
  }

  /// The size in bytes of the whole decoded image at 8 bits per sample, as a decoder that buffers the whole image needs
  /// it.
  package let decodedByteCount: UInt64

  /// The size of the result in pixels, before it is oriented and padded.
  package var storedOutputSize: PixelSize { framing.imageSize.rotated(by: orientation) }

  /// The ratio of chroma samples to luma samples of the result, per axis and before it is oriented.
  var storedChromaScale: (horizontal: Double, vertical: Double) {
    let subsampling = encoder.subsampling
    return orientation.swapsAxes
      ? (subsampling.verticalScale, subsampling.horizontalScale)
      : (subsampling.horizontalScale, subsampling.verticalScale)
  }

  init(
    _ draft: PlanDraft, of header: ImageHeader, frames: FrameSelection, decodeScale: Int, decodeByteCount: UInt64,
    attachments: ImageAttachments, spill: SpillDirectory?
  ) throws(PipelineError) {
    let (configuration, framing) = (draft.configuration, draft.framing)
    (input, storedSize) = (ImageInfo(header), PixelSize(width: header.width, height: header.height))
    decodedByteCount = UInt64(storedSize.pixelCount) * UInt64(Self.channelCount(header))
    (orientation, self.framing, self.frames, self.decodeScale) = (draft.orientation, framing, frames, decodeScale)
    (crop, faces, hasOverlays) = (draft.crop, draft.faces ?? [], !(configuration.overlays ?? []).isEmpty)
    toleratesTruncation = configuration.tolerateTruncation ?? false
    toleratesDamage = configuration.tolerateDamage ?? false
    keepsCopyright = configuration.metadata == .keepCopyright && !configuration.hidesPixels
    (kernel, resampling) = (configuration.resamplingKernel ?? .lanczos3, configuration.resampling(framing))
    hidesBlocks = framing.reduction >= Self.minHidingReduction(quality: configuration.rowQuality)
    filters = try draft.filters(stored: storedSize)
    changesPixels = !filters.isEmpty || framing.isPadded || hasOverlays
    let formats = Self.formats(of: header, configuration, size: framing.canvasSize, isAnimation: frames.isAnimation)
    let depth = DepthPlan(header, configuration: configuration, formats: formats, filters, frames)
    color = ColorPlan(
      header, configuration: configuration, formats: formats, changesPixels: changesPixels, isDeep: depth.isDeep)
    hidden = try Self.hiddenAreas(draft, of: header, frames, attachments, keepsHDR: color.gamut == .hdr)
    let passesRows = draft.passesRows(of: header, filters, color)
    let choice = try FormatChoice(draft, of: header, frames, formats: formats, passesRows: passesRows)
    var options = try draft.encoder(of: header, formats[0], choice, passesRows: passesRows, isDeep: depth.isDeep)
    options.metadata = attachments.metadata(for: draft, header, color, format: options.pixelFormat)
    (options.hasFrames, options.spill) = (frames.isAnimation, frames.isAnimation ? spill : nil)
    neverLarger = NeverLarger(draft, inputFormat: header.format, inputSize: input.size, encoder: options)
    byteLimit = ByteLimit(configuration, encoder: options, neverLarger: neverLarger, choice: choice)
    options.gif.isSpooled = options.hasFrames && byteLimit != nil
    encoder = options
    background = attachments.samples(of: configuration.background ?? .white, color.gamut, options.metadata.profile)
    filterFormat = passesRows ? options.pixelFormat : header.colorFormat(isDeep: depth.isDeep)
    factsPlace = FactsPlace(configuration, header: header, filterFormat: filterFormat)
    warnings = draft.knownWarnings(header, color.obstacle, depth.obstacle)
    headerWarnings = frames.warnings(of: header)
    sizeRemedy = neverLarger == nil ? NeverLarger.remedy(draft, inputFormat: header.format, encoder: options) : nil
    profileFormat = color.inputFormat(of: header, filterFormat)
    conversionByteCount = color.conversionByteCount(header)
    workingSetByteCount = decodeByteCount + (try stagesByteCount(header: header))
  }

  /// Adds the overlays, and the memory that they need.
  ///
  /// They are decoded one after the other, after what the image is decoded with, its colors are converted with and its
  /// regions are hidden with was allocated, and before anything else.
  mutating func setOverlays(_ overlays: [PlannedOverlay], _ header: ImageHeader, decodeByteCount: UInt64) {
    self.overlays = overlays
    let maskByteCount = RegionMask.byteCount(hidden, layout: expectedLayout(header))
    let begun = decodeByteCount + UInt64(conversionByteCount + maskByteCount)
    let decoding = overlays.map(\.decodeByteCount).max() ?? 0
    workingSetByteCount =
      max(workingSetByteCount, begun + decoding) + overlays.reduce(0) { $0 + UInt64($1.byteCount) }
  }

  /// Checks that every stage can be created for these sizes.
  /// - Throws: `limitExceeded` with the name of the limit.
  static func checkSides(stored: PixelSize, framing: Framing, filters: FilterChain) throws(PipelineError) {
    var limits = [(stored, maxSide, "max_side"), (framing.imageSize, maxSide, "max_side")]
    if filters.hasAreas { limits.append((framing.imageSize, maxFilteredSide, "max_filtered_side")) }
    for (size, limit, name) in limits {
      let side = max(size.width, size.height)
      guard side > limit else { continue }
      throw PipelineError(exceeding: name, limit: UInt64(limit), value: UInt64(side), unit: "pixels per side")
    }
  }

  private static func channelCount(_ header: ImageHeader) -> Int {
    let colors =
      switch header.colorSpace {
      case .gray: 1
      case .ycbcr, .rgb: 3
      case .cmyk, .ycck: 4
      }
    return colors + (header.hasAlpha ? 1 : 0)
  }
}
