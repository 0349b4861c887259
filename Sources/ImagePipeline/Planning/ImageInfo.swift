internal import ImageCodecs

/// The properties of an image, with its size as displayed.
package struct ImageInfo: Sendable, Hashable {
  /// `jpeg`, `png`, `webp`, `gif`, `bmp`, `tga`, `psd`, `pnm`, `hdr`, `ico`, `tiff`, `avif`, `heic`, `jxl` or `raw`; empty for a
  /// planned result whose format its rows decide.
  package var format: String
  /// Size as displayed, after orientation.
  package var size: PixelSize
  /// The EXIF orientation as stored, 1 to 8.
  package var orientation: Int
  /// Whether the image has transparency.
  package var hasAlpha: Bool
  /// Bits per sample as stored.
  package var bitDepth: Int
  /// `gray`, `ycbcr`, `rgb`, `cmyk` or `ycck`.
  package var colorSpace: String
  /// The number of frames; 0 if it cannot be determined without reading the whole file.
  package var frameCount: Int
  /// How long the animation takes once; `nil` for a still image, and if it is not known.
  package var duration: Duration?
  /// How often the animation is played, 0 for ever; `nil` for a still image, and if it is not known.
  package var playCount: Int?
  /// `srgb`, `display_p3`, `hdr` (PQ or HLG), or `other` for the colors of any other profile.
  package var gamut: String
  /// The layout of a raw result; `nil` for other images.
  package var tensor: TensorInfo?
  /// The gain map, if the image is inspected and has one.
  package var gainMap: GainMapInfo?

  package init(
    format: String, size: PixelSize, orientation: Int, hasAlpha: Bool, bitDepth: Int, colorSpace: String,
    frameCount: Int, duration: Duration? = nil, playCount: Int? = nil, gamut: String = "srgb",
    tensor: TensorInfo? = nil, gainMap: GainMapInfo? = nil
  ) {
    self.format = format
    self.size = size
    self.orientation = orientation
    self.hasAlpha = hasAlpha
    self.bitDepth = bitDepth
    self.colorSpace = colorSpace
    self.frameCount = frameCount
    self.duration = duration
    self.playCount = playCount
    self.gamut = gamut
    self.tensor = tensor
    self.gainMap = gainMap
  }

  /// Whether the format is one of those above.
  package var isOfKnownFormat: Bool { ImageFormat(rawValue: format) != nil }

  init(_ header: ImageHeader) {
    format = header.format.rawValue
    size = PixelSize(width: header.width, height: header.height).rotated(by: header.orientation)
    orientation = header.isStorageOrder ? Orientation.up.rawValue : header.orientation.rawValue
    hasAlpha = header.hasAlpha
    bitDepth = header.bitDepth
    colorSpace = header.colorSpace.rawValue
    frameCount = header.frameCount
    gamut = header.gamut.name
    (tensor, gainMap) = (nil, nil)
    let isAnimation = header.hasFrames && (header.frameCount > 1 || header.canBufferInput)
    (duration, playCount) = (nil, isAnimation ? header.playCount : nil)
  }

  init(_ plan: Plan) {
    guard plan.passthrough == .decoded else {
      self = plan.input
      size = plan.outputSize
      orientation = Orientation.up.rawValue
      frameCount = plan.frames.isAnimation ? plan.input.frameCount : 1
      gainMap = nil
      if plan.passthrough.recoding(plan.encoder) != nil { noteFormat(plan.encoder.format) }
      return
    }
    self.format = ""
    size = plan.outputSize
    orientation = Orientation.up.rawValue
    hasAlpha = plan.encoder.pixelFormat.hasAlpha
    tensor = TensorInfo(plan)
    let format = plan.encoder.pixelFormat
    bitDepth = tensor.map { 8 * $0.element.byteCount } ?? plan.encoder.storedBitDepth
    let isGray = tensor.map { $0.channels == .gray } ?? format.isGray
    colorSpace = (isGray ? ImageHeader.ColorSpace.gray : .rgb).rawValue
    gamut = plan.color.gamut.name
    (frameCount, duration, playCount) = (plan.frames.isAnimation ? 0 : 1, nil, nil)
    if plan.byteLimit?.choice == nil { noteFormat(plan.encoder.format) }
  }

  /// Sets the format of an encoded result, and the color space in which it stores colors.
  mutating func noteFormat(_ format: ImageFormat) {
    self.format = format.rawValue
    hasAlpha = hasAlpha && format.takes(.rgba8)
    if colorSpace != ImageHeader.ColorSpace.gray.rawValue {
      colorSpace = (format.takes(.ycc8) ? ImageHeader.ColorSpace.ycbcr : .rgb).rawValue
    }
  }

  /// Sets the format of a result that was planned without one.
  /// - `bytes`: The first bytes of the result.
  package mutating func noteFormat(of bytes: RawSpan) {
    if let format = ImageFormat.sniff(bytes) { noteFormat(format) }
  }
}

/// A format that was compared with others.
package struct FormatTrial: Sendable, Hashable {
  /// The name of the format.
  package var format: String
  /// The estimated size of the result in bytes.
  package var estimatedByteCount: UInt64
  /// The quality, 0 to 1; `nil` for a lossless result.
  package var compressionQuality: Double?

  /// Whether the format is known, and the quality one that results can have.
  package var isPlausible: Bool {
    ImageFormat(rawValue: format) != nil && (compressionQuality.map { (0...1).contains($0) } ?? true)
  }

  package init(format: String, estimatedByteCount: UInt64, compressionQuality: Double?) {
    self.format = format
    self.estimatedByteCount = estimatedByteCount
    self.compressionQuality = compressionQuality
  }
}

/// The outcome of processing one image.
package struct ProcessingReport: Sendable, Hashable {
  /// The properties of the image.
  package var input: ImageInfo
  /// The properties of the result.
  package var output: ImageInfo
  /// The bytes of the image that were read.
  package var inputByteCount: UInt64
  /// The size of the result in bytes.
  package var outputByteCount: UInt64
  /// Busy time of each stage.
  package var timings: StageTimings
  /// The maximum number of bytes that the image's budget had allocated at once.
  package var peakMemoryByteCount: UInt64
  /// Conditions that did not prevent the result.
  package var warnings: [Warning]
  /// The compression quality of the result, 0 to 1; `nil` for a lossless result.
  package var compressionQuality: Double?
  /// The similarity of the result to its uncompressed rows, a score of SSIMULACRA 2; `nil` if it was not requested.
  package var similarity: Double?
  /// The formats that were compared, the smallest first; empty if there was no choice.
  package var formatTrials: [FormatTrial] = []
  /// The facts of the image; `nil` if they were not requested, and if it was passed through.
  package var facts: ImageFacts?
  /// The part of the displayed image that was chosen by its pixels; `nil` if none was.
  package var crop: PixelRect?
  /// The rectangles around what each region has hidden, in pixels of the displayed image.
  package var hiddenRegions: [PixelRect] = []
  /// The faces that were found, in pixels of the displayed image, the largest first.
  package var faces: [PixelRect] = []
  /// The size in bytes of the gain map that the result contains; 0 without one.
  package var gainMapByteCount: UInt64 = 0
  /// Whether the image was passed through without decoding: its compressed data were copied or transformed without
  /// loss.
  package var isPassedThrough = false

  package init(
    input: ImageInfo, output: ImageInfo, inputByteCount: UInt64, outputByteCount: UInt64, timings: StageTimings,
    peakMemoryByteCount: UInt64, warnings: [Warning], compressionQuality: Double? = nil,
    similarity: Double? = nil, formatTrials: [FormatTrial] = [], facts: ImageFacts? = nil, crop: PixelRect? = nil,
    hiddenRegions: [PixelRect] = [], faces: [PixelRect] = [], gainMapByteCount: UInt64 = 0,
    isPassedThrough: Bool = false
  ) {
    self.input = input
    self.output = output
    self.inputByteCount = inputByteCount
    self.outputByteCount = outputByteCount
    self.timings = timings
    self.peakMemoryByteCount = peakMemoryByteCount
    self.warnings = warnings
    self.compressionQuality = compressionQuality
    self.similarity = similarity
    self.formatTrials = formatTrials
    self.facts = facts
    self.crop = crop
    self.hiddenRegions = hiddenRegions
    self.faces = faces
    self.gainMapByteCount = gainMapByteCount
    self.isPassedThrough = isPassedThrough
  }
}
