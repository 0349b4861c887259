package import Fields
package import ImageCodecs
package import ImageKernels

/// The requested properties of a result.
///
/// A field that is `nil` has the preset's value, or the default stated in its documentation.
package struct ProcessingConfiguration: Sendable, Hashable {
  /// The maximum width of the result in pixels, 1 to 65500; none by default.
  package var maxWidth: Int?
  /// The maximum height of the result in pixels, 1 to 65500; none by default.
  package var maxHeight: Int?
  /// The compression quality of a lossy result, 0 to 1, where 1, the default, is the encoder's quality 100.
  package var compressionQuality: Double?
  /// The divisor of the maximum width and height, at least 1; 1 by default.
  package var scaleFactor: Double?
  /// The file format of the result; `original` by default.
  package var preferredFormat: OutputFormat?
  /// The way in which the image is resized to its bounds; `fit` by default.
  package var resizeMode: ResizeMode?
  /// Whether an image that is smaller than its bounds is enlarged; no by default.
  package var allowUpscale: Bool?
  /// The part of the image that `fill` keeps, and the position of a padded image; `center` by default.
  package var gravity: Gravity?
  /// The position that `fill` keeps in view; overrides `gravity`; none by default.
  package var focusPoint: Point?
  /// The part of the displayed image to use; applied before resizing; the whole image by default.
  package var crop: Crop?
  /// Whether the result is padded to exactly its bounds with the background color; no by default.
  package var pad: Bool?
  /// The clockwise rotation in degrees: 0, 90, 180 or 270; 0 by default.
  ///
  /// Rotation and flips are applied first; all other fields refer to the rotated and flipped image.
  package var rotation: Int?
  /// Whether left and right are swapped, after the rotation; no by default.
  package var flipHorizontal: Bool?
  /// Whether top and bottom are swapped, after the rotation; no by default.
  package var flipVertical: Bool?
  /// The color of the padding, and behind transparent pixels if the result has no alpha; white by default.
  package var background: Color?
  /// The maximum size of the result in bytes; quality is lowered to fit; unlimited by default.
  package var maxBytes: UInt64?
  /// The metadata that the result keeps; `strip` by default.
  package var metadata: MetadataPolicy?
  /// Whether a truncated image is delivered as far as it goes, with gray for the rest and a warning; otherwise it is an
  /// error; no by default.
  package var tolerateTruncation: Bool?
  /// Whether an image is always decoded and encoded, even if it could be copied, rotated or flipped without loss; no by
  /// default.
  package var alwaysEncode: Bool?
  /// Whether a damaged image is delivered as far as it can be decoded, with gray for the rest and a warning; otherwise
  /// it is an error; no by default.
  package var tolerateDamage: Bool?
  /// The filters, applied in this order after the resize; at most `Filter.maxChainCount`; none by default.
  package var filters: [Filter]?
  /// Whether the result may be smaller than its bounds if it cannot fit `maxBytes` otherwise; no by default.
  package var allowSmallerDimensions: Bool?
  /// Whether frames of an animation may be left out if it cannot fit `maxBytes` otherwise; no by default.
  package var allowLowerFrameRate: Bool?
  /// The similarity to its uncompressed rows that the result must reach at the lowest possible quality: a score of
  /// SSIMULACRA 2, 30 to 100; none by default.
  package var targetSimilarity: Double?
  /// Whether a result that would be larger than its image, in bytes, is encoded at a lower quality; no by default.
  package var neverLarger: Bool?
  /// The frame of an animation that the result starts with; 0 by default, the first.
  package var frameIndex: FrameIndex?
  /// The maximum number of frames of the result; 0 for all; 1 by default.
  package var maxFrames: Int?
  /// The kernel with which the image is reduced and enlarged; `lanczos3` by default.
  package var resamplingKernel: ResamplingKernel?
  /// Whether the image is decoded at its full size and resized to the samples that Pillow computes; no by default.
  package var exactResize: Bool?
  /// Whether the image is decoded at its full size and resized in linear light; no by default.
  package var resizeInLinearLight: Bool?
  /// The color space of the result; `srgb` by default.
  package var colorSpace: ColorSpacePolicy?
  /// Whether `selected` metadata contains EXIF; no by default.
  package var keepEXIF: Bool?
  /// Whether `selected` metadata contains XMP; no by default.
  package var keepXMP: Bool?
  /// Whether `selected` metadata contains IPTC, in JPEG results; no by default.
  package var keepIPTC: Bool?
  /// Whether `selected` EXIF and XMP contain the position at which the image was taken; no by default.
  package var keepLocation: Bool?
  /// Whether `selected` EXIF and XMP contain serial numbers and the owner of the camera; no by default.
  package var keepSerialNumbers: Bool?
  /// The title of the result; that of the kept metadata by default.
  @Exact package var metadataTitle: String?
  /// The copyright notice of the result; that of the kept metadata by default.
  @Exact package var metadataCopyright: String?
  /// The description of the result; that of the kept metadata by default.
  @Exact package var metadataDescription: String?
  /// The formats among which `auto` chooses; JPEG, PNG and WebP by default.
  package var accept: AcceptedFormats?
  /// The time that `auto` may take for a smaller result; `medium` by default.
  package var autoEffort: AutoEffort?
  /// The multiplier of the minimum and maximum width and height, 0.1 to 8; 1 by default.
  package var zoom: Double?
  /// The minimum width of the result in pixels, 1 to 65500; reached even if that enlarges the image; none by default.
  package var minWidth: Int?
  /// The minimum height of the result in pixels, 1 to 65500; reached even if that enlarges the image; none by default.
  package var minHeight: Int?
  /// The ratio of width to height to which the result is extended with the background color, 0.1 to 10; none by
  /// default.
  package var extendAspectRatio: Double?
  /// The amount of sharpening of an image that is much reduced, 0 to 2; a smaller reduction is sharpened less; 0 by
  /// default.
  package var sharpenReduced: Double?
  /// Whether the facts of the image are reported; no by default.
  package var facts: Bool?
  /// The uniform border of the displayed image to remove; none by default.
  package var trim: Trim?
  /// The parts of the displayed image to hide; at most `Region.maxCount`; none by default.
  package var regions: [Region]?
  /// The margin around faces that `gravity` keeps if it fits, as a fraction of a face's height; 0.5 by default.
  package var minFaceMargin: Double?
  /// The images and texts that are drawn on the result, in this order; at most `Overlay.maxCount`; none by default.
  package var overlays: [Overlay]?
  /// The HDR gain map of the result; `drop` by default.
  package var gainMap: GainMapPolicy?
  /// Options for JPEG results; ignored for other formats.
  package var jpeg: JPEGOptions?
  /// Options for PNG results; ignored for other formats.
  package var png: PNGOptions?
  /// Options for WebP results; ignored for other formats.
  package var webp: WebPOptions?
  /// Options for AVIF results; ignored for other formats.
  package var avif: AVIFOptions?
  /// Options for JPEG XL results; ignored for other formats.
  package var jxl: JXLOptions?
  /// Options for raw results; ignored for other formats.
  package var tensor: TensorOptions?

  package init(
    maxWidth: Int? = nil, maxHeight: Int? = nil, compressionQuality: Double? = nil, scaleFactor: Double? = nil,
    preferredFormat: OutputFormat? = nil, resizeMode: ResizeMode? = nil, allowUpscale: Bool? = nil,
    gravity: Gravity? = nil, focusPoint: Point? = nil, crop: Crop? = nil, pad: Bool? = nil, rotation: Int? = nil,
    flipHorizontal: Bool? = nil, flipVertical: Bool? = nil, background: Color? = nil, maxBytes: UInt64? = nil,
    metadata: MetadataPolicy? = nil, tolerateTruncation: Bool? = nil, alwaysEncode: Bool? = nil,
    tolerateDamage: Bool? = nil, filters: [Filter]? = nil, allowSmallerDimensions: Bool? = nil,
    targetSimilarity: Double? = nil, neverLarger: Bool? = nil, frameIndex: FrameIndex? = nil, maxFrames: Int? = nil,
    resamplingKernel: ResamplingKernel? = nil, exactResize: Bool? = nil, resizeInLinearLight: Bool? = nil,
    colorSpace: ColorSpacePolicy? = nil,
    accept: AcceptedFormats? = nil,
    zoom: Double? = nil, minWidth: Int? = nil, minHeight: Int? = nil, extendAspectRatio: Double? = nil,
    sharpenReduced: Double? = nil, facts: Bool? = nil,
    trim: Trim? = nil, regions: [Region]? = nil, minFaceMargin: Double? = nil, overlays: [Overlay]? = nil,
    gainMap: GainMapPolicy? = nil, jpeg: JPEGOptions? = nil, png: PNGOptions? = nil, webp: WebPOptions? = nil,
    avif: AVIFOptions? = nil, jxl: JXLOptions? = nil, tensor: TensorOptions? = nil
  ) {
    self.maxWidth = maxWidth
    self.maxHeight = maxHeight
    self.compressionQuality = compressionQuality
    self.scaleFactor = scaleFactor
    self.preferredFormat = preferredFormat
    self.resizeMode = resizeMode
    self.allowUpscale = allowUpscale
    self.gravity = gravity
    self.focusPoint = focusPoint
    self.crop = crop
    self.pad = pad
    self.rotation = rotation
    self.flipHorizontal = flipHorizontal
    self.flipVertical = flipVertical
    self.background = background
    self.maxBytes = maxBytes
    self.metadata = metadata
    self.tolerateTruncation = tolerateTruncation
    self.alwaysEncode = alwaysEncode
    self.tolerateDamage = tolerateDamage
    self.filters = filters
    self.allowSmallerDimensions = allowSmallerDimensions
    self.targetSimilarity = targetSimilarity
    self.neverLarger = neverLarger
    self.frameIndex = frameIndex
    self.maxFrames = maxFrames
    self.resamplingKernel = resamplingKernel
    self.exactResize = exactResize
    self.resizeInLinearLight = resizeInLinearLight
    self.colorSpace = colorSpace
    self.accept = accept
    self.zoom = zoom
    self.minWidth = minWidth
    self.minHeight = minHeight
    self.extendAspectRatio = extendAspectRatio
    self.sharpenReduced = sharpenReduced
    self.facts = facts
    self.trim = trim
    self.regions = regions
    self.minFaceMargin = minFaceMargin
    self.overlays = overlays
    self.gainMap = gainMap
    self.jpeg = jpeg
    self.png = png
    self.webp = webp
    self.avif = avif
    self.jxl = jxl
    self.tensor = tensor
  }
}
