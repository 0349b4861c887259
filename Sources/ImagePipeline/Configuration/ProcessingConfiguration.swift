package import Fields
package import ImageCodecs
package import ImageKernels

/// The requested properties of a result.
///
/// A field that is `nil` has the preset's value, or the default stated in its documentation.
package struct ProcessingConfiguration: Sendable, Hashable {
  /// The maximum width of the result in pixels, 1 to 65500.
  ///
  /// Default: none.
  package var maxWidth: Int?
  /// The maximum height of the result in pixels, 1 to 65500.
  ///
  /// Default: none.
  package var maxHeight: Int?
  /// The compression quality of a lossy result, 0 to 1; 1 is the encoder's quality 100.
  ///
  /// Default: 1.
  package var compressionQuality: Double?
  /// The divisor of the maximum width and height, at least 1.
  ///
  /// Default: 1.
  package var scaleFactor: Double?
  /// The file format of the result.
  ///
  /// Default: `original`.
  package var preferredFormat: OutputFormat?
  /// The way in which the image is resized to its bounds.
  ///
  /// Default: `fit`.
  package var resizeMode: ResizeMode?
  /// Whether an image that is smaller than its bounds is enlarged.
  ///
  /// Default: no.
  package var allowUpscale: Bool?
  /// The part of the image that `fill` keeps, and the position of a padded image.
  ///
  /// Default: `center`.
  package var gravity: Gravity?
  /// The position that `fill` keeps in view; overrides `gravity`.
  ///
  /// Default: none.
  package var focusPoint: Point?
  /// The part of the displayed image to use; applied before resizing.
  ///
  /// Default: the whole image.
  package var crop: Crop?
  /// Whether the result is padded to exactly its bounds with the background color.
  ///
  /// Default: no.
  package var pad: Bool?
  /// The clockwise rotation in degrees: 0, 90, 180 or 270.
  ///
  /// Rotation and flips are applied first; all other fields refer to the rotated and flipped image.
  ///
  /// Default: 0.
  package var rotation: Int?
  /// Whether left and right are swapped, after the rotation.
  ///
  /// Default: no.
  package var flipHorizontal: Bool?
  /// Whether top and bottom are swapped, after the rotation.
  ///
  /// Default: no.
  package var flipVertical: Bool?
  /// The color of the padding, and behind transparent pixels if the result has no alpha.
  ///
  /// Default: white.
  package var background: Color?
  /// The maximum size of the result in bytes; quality is lowered to fit.
  ///
  /// Default: no limit.
  package var maxBytes: UInt64?
  /// The metadata that the result keeps.
  ///
  /// Default: `strip`.
  package var metadata: MetadataPolicy?
  /// Whether a truncated image is delivered as far as it goes, with gray for the rest and a warning; otherwise it is an
  /// error.
  ///
  /// Default: no.
  package var tolerateTruncation: Bool?
  /// Whether an image is always decoded and encoded, even if it could be copied, rotated or flipped without loss.
  ///
  /// Default: no.
  package var alwaysEncode: Bool?
  /// Whether a damaged image is delivered as far as it can be decoded, with gray for the rest and a warning; otherwise
  /// it is an error.
  ///
  /// Default: no.
  package var tolerateDamage: Bool?
  /// The filters, applied in this order after the resize; at most `Filter.maxChainCount`.
  ///
  /// Default: none.
  package var filters: [Filter]?
  /// Whether the result may be smaller than its bounds if it cannot fit `maxBytes` otherwise.
  ///
  /// Default: no.
  package var allowSmallerDimensions: Bool?
  /// Whether frames of an animation may be left out if it cannot fit `maxBytes` otherwise.
  ///
  /// Default: no.
  package var allowLowerFrameRate: Bool?
  /// The similarity to its uncompressed rows that the result must reach at the lowest possible quality: a score of
  /// SSIMULACRA 2, 30 to 100.
  ///
  /// Default: none.
  package var targetSimilarity: Double?
  /// Whether a result that would be larger than its image, in bytes, is encoded at a lower quality.
  ///
  /// Default: no.
  package var neverLarger: Bool?
  /// The frame of an animation that the result starts with.
  ///
  /// Default: 0, the first.
  package var frameIndex: FrameIndex?
  /// The maximum number of frames of the result; 0 for all.
  ///
  /// Default: 1.
  package var maxFrames: Int?
  /// The kernel with which the image is reduced and enlarged.
  ///
  /// Default: `lanczos3`.
  package var resamplingKernel: ResamplingKernel?
  /// Whether the image is decoded at its full size and resized to the samples that Pillow computes.
  ///
  /// Default: no.
  package var exactResize: Bool?
  /// Whether the image is decoded at its full size and resized in linear light.
  ///
  /// Default: no.
  package var resizeInLinearLight: Bool?
  /// The color space of the result.
  ///
  /// Default: `srgb`.
  package var colorSpace: ColorSpacePolicy?
  /// Whether `selected` metadata contains EXIF.
  ///
  /// Default: no.
  package var keepEXIF: Bool?
  /// Whether `selected` metadata contains XMP.
  ///
  /// Default: no.
  package var keepXMP: Bool?
  /// Whether `selected` metadata contains IPTC, in JPEG results.
  ///
  /// Default: no.
  package var keepIPTC: Bool?
  /// Whether `selected` EXIF and XMP contain the position at which the image was taken.
  ///
  /// Default: no.
  package var keepLocation: Bool?
  /// Whether `selected` EXIF and XMP contain serial numbers and the owner of the camera.
  ///
  /// Default: no.
  package var keepSerialNumbers: Bool?
  /// The title of the result.
  ///
  /// Default: that of the metadata that is kept.
  @Exact package var metadataTitle: String?
  /// The copyright notice of the result.
  ///
  /// Default: that of the metadata that is kept.
  @Exact package var metadataCopyright: String?
  /// The description of the result.
  ///
  /// Default: that of the metadata that is kept.
  @Exact package var metadataDescription: String?
  /// The formats among which `auto` chooses.
  ///
  /// Default: JPEG, PNG and WebP.
  package var accept: AcceptedFormats?
  /// The time that `auto` may take for a smaller result.
  ///
  /// Default: `medium`.
  package var autoEffort: AutoEffort?
  /// The multiplier of the minimum and maximum width and height, 0.1 to 8.
  ///
  /// Default: 1.
  package var zoom: Double?
  /// The minimum width of the result in pixels, 1 to 65500; reached even if that enlarges the image.
  ///
  /// Default: none.
  package var minWidth: Int?
  /// The minimum height of the result in pixels, 1 to 65500; reached even if that enlarges the image.
  ///
  /// Default: none.
  package var minHeight: Int?
  /// The ratio of width to height to which the result is extended with the background color, 0.1 to 10.
  ///
  /// Default: none.
  package var extendAspectRatio: Double?
  /// The amount of sharpening of an image that is much reduced, 0 to 2; a smaller reduction is sharpened less.
  ///
  /// Default: 0.
  package var sharpenReduced: Double?
  /// Whether the facts of the image are reported.
  ///
  /// Default: no.
  package var facts: Bool?
  /// The uniform border of the displayed image to remove.
  ///
  /// Default: none.
  package var trim: Trim?
  /// The parts of the displayed image to hide; at most `Region.maxCount`.
  ///
  /// Default: none.
  package var regions: [Region]?
  /// The margin around faces that `gravity` keeps if it fits, as a fraction of a face's height.
  ///
  /// Default: 0.5.
  package var minFaceMargin: Double?
  /// The images and texts that are drawn on the result, in this order; at most `Overlay.maxCount`.
  ///
  /// Default: none.
  package var overlays: [Overlay]?
  /// The HDR gain map of the result.
  ///
  /// Default: `drop`.
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
