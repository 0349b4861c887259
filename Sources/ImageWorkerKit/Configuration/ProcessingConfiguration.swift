internal import Fields
internal import ImagePipeline

/// The requested properties of a result.
///
/// Every field of the worker's contract is available by its name, with the values that the worker's command line takes;
/// the common ones are also properties:
///
/// ```swift
/// var configuration = ProcessingConfiguration()
/// configuration.maxWidth = 800
/// configuration.preferredFormat = .webp
/// try configuration.set("filters", to: "sharpen=0.3")
/// try configuration.set("webp.method", to: "6")
/// ```
///
/// A field that is not set has the default that ``fieldDescriptions`` states.
public struct ProcessingConfiguration: Sendable, Hashable {
  /// The fields, as the engine takes them.
  var fields: ImagePipeline.ProcessingConfiguration

  init(_ fields: ImagePipeline.ProcessingConfiguration) { self.fields = fields }

  /// Creates a configuration that leaves the image as it is: upright, in sRGB and without metadata.
  public init() { self.init(ImagePipeline.ProcessingConfiguration()) }

  /// Creates the configuration of a preset.
  /// - Parameter name: The name of one of ``Preset/builtIn``, such as `thumbnail`.
  /// - Throws: ``ImageProcessingError/Reason/unknownPreset``, with a message that lists the names.
  public init(preset name: String) throws(ImageProcessingError) {
    self.init(
      try ImageProcessingError.mapping { () throws(PipelineError) in
        try PresetCatalog().configuration(named: name)
      })
  }

  /// Creates a configuration from texts, such as those of a query or a file.
  /// - Parameter texts: Values by the names of their fields.
  /// - Throws: ``ImageProcessingError/Reason/invalidField``, with the name of the field.
  public init(_ texts: [String: String]) throws(ImageProcessingError) {
    self.init()
    // The order is fixed, so that the same texts always produce the same error.
    for (field, text) in texts.sorted(by: { $0.key < $1.key }) { try set(field, to: text) }
  }

  /// Returns this configuration with each field that is set in another one replaced.
  public func overridden(by other: ProcessingConfiguration) -> ProcessingConfiguration {
    ProcessingConfiguration(fields.overridden(by: other.fields))
  }

  /// Checks every field that is set, and the fields against each other.
  ///
  /// Processing an image does the same first.
  /// - Throws: ``ImageProcessingError/Reason/invalidField`` with the name of the first invalid field;
  ///   ``ImageProcessingError/Reason/unsupportedField`` for a field that this build does not support.
  public func validate() throws(ImageProcessingError) {
    try ImageProcessingError.mapping { () throws(PipelineError) in try fields.validate() }
  }
}

/// The common fields.
extension ProcessingConfiguration {
  /// The maximum width of the result in pixels, 1 to 65500.
  ///
  /// Default: none.
  public var maxWidth: Int? {
    get { fields.maxWidth }
    set { fields.maxWidth = newValue }
  }

  /// The maximum height of the result in pixels, 1 to 65500.
  ///
  /// Default: none.
  public var maxHeight: Int? {
    get { fields.maxHeight }
    set { fields.maxHeight = newValue }
  }

  /// The divisor of the maximum width and height, at least 1.
  ///
  /// Default: 1.
  public var scaleFactor: Double? {
    get { fields.scaleFactor }
    set { fields.scaleFactor = newValue }
  }

  /// The way in which the image is resized to its bounds.
  ///
  /// Default: ``ResizeMode/fit``.
  public var resizeMode: ResizeMode? {
    get { fields.resizeMode.map { ResizeMode($0) } }
    set { fields.resizeMode = newValue?.choice }
  }

  /// The part of the image that ``ResizeMode/fill`` keeps, and the position of a padded image.
  ///
  /// Default: ``Gravity/center``.
  public var gravity: Gravity? {
    get { fields.gravity.map { Gravity($0) } }
    set { fields.gravity = newValue?.choice }
  }

  /// The margin around faces that ``Gravity/faces`` keeps if it fits, as a fraction of a face's height, between 0 and 2.
  ///
  /// Default: 0.5.
  public var minFaceMargin: Double? {
    get { fields.minFaceMargin }
    set { fields.minFaceMargin = newValue }
  }

  /// Whether an image that is smaller than its bounds is enlarged.
  ///
  /// Default: `false`.
  public var allowUpscale: Bool? {
    get { fields.allowUpscale }
    set { fields.allowUpscale = newValue }
  }

  /// Whether the result is padded to exactly its bounds.
  ///
  /// Default: `false`.
  public var pad: Bool? {
    get { fields.pad }
    set { fields.pad = newValue }
  }

  /// The clockwise rotation in degrees: 0, 90, 180 or 270.
  ///
  /// Default: 0.
  public var rotation: Int? {
    get { fields.rotation }
    set { fields.rotation = newValue }
  }

  /// The file format of the result.
  ///
  /// Default: ``OutputFormat/original``.
  public var preferredFormat: OutputFormat? {
    get { fields.preferredFormat.map { OutputFormat($0) } }
    set { fields.preferredFormat = newValue?.choice }
  }

  /// The compression quality of a lossy result, 0 to 1; 1 is the encoder's quality 100.
  ///
  /// Default: 1.
  public var compressionQuality: Double? {
    get { fields.compressionQuality }
    set { fields.compressionQuality = newValue }
  }

  /// The similarity to the uncompressed rows that the result reaches at the lowest possible quality: a SSIMULACRA 2
  /// score, 30 to 100.
  ///
  /// Default: none.
  public var targetSimilarity: Double? {
    get { fields.targetSimilarity }
    set { fields.targetSimilarity = newValue }
  }

  /// The maximum size of the result in bytes; quality is lowered to fit.
  ///
  /// Default: none.
  public var maxBytes: UInt64? {
    get { fields.maxBytes }
    set { fields.maxBytes = newValue }
  }

  /// Whether a result that would have more bytes than its image is encoded at a lower quality.
  ///
  /// Default: `false`.
  public var neverLarger: Bool? {
    get { fields.neverLarger }
    set { fields.neverLarger = newValue }
  }

  /// The maximum number of frames of the result; 0 for all.
  ///
  /// Default: 1.
  public var maxFrames: Int? {
    get { fields.maxFrames }
    set { fields.maxFrames = newValue }
  }

  /// The metadata that the result keeps.
  ///
  /// Default: ``MetadataPolicy/strip``.
  public var metadata: MetadataPolicy? {
    get { fields.metadata.map { MetadataPolicy($0) } }
    set { fields.metadata = newValue?.choice }
  }
}
