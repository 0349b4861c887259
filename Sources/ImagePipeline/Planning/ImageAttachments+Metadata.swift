internal import ImageCodecs

extension ImageAttachments {
  /// The maximum size of a value in bytes that is kept of an image of which parts are hidden.
  private static let maxValueByteCount = 1000

  /// Returns the metadata of a result, with its color profile or code points.
  /// - `format`: The input format of the encoder.
  func metadata(
    for draft: PlanDraft, _ header: ImageHeader, _ color: ColorPlan, format: PixelFormat
  ) -> EmbeddedMetadata {
    var metadata = metadata(
      for: draft.configuration, copyright: header.copyright, outputSize: draft.framing.canvasSize,
      isSRGB: color.gamut.isSRGB)
    metadata.profile = color.profile(ofImage: profile, format: format)
    metadata.colorCodes = color.gamut == .hdr ? header.colorCodes : nil
    return metadata
  }

  /// Returns the metadata of a result, without a color profile.
  /// - `copyright`: the EXIF block with artist and copyright of the image; empty for none.
  /// - `isSRGB`: whether the colors of the result are sRGB.
  private func metadata(
    for configuration: ProcessingConfiguration, copyright: [UInt8], outputSize: PixelSize, isSRGB: Bool
  ) -> EmbeddedMetadata {
    let texts = MetadataTexts(
      title: configuration.metadataTitle, copyright: configuration.metadataCopyright,
      description: configuration.metadataDescription)
    var edit = MetadataEdit(isSRGB: isSRGB, texts: texts)
    // A result that may become smaller does not know its size yet.
    let isFinal = configuration.maxBytes == nil || !(configuration.allowSmallerDimensions ?? false)
    if isFinal { (edit.width, edit.height) = (outputSize.width, outputSize.height) }
    if configuration.hidesPixels { edit.maxValueByteCount = Self.maxValueByteCount }
    switch configuration.metadata ?? .strip {
    case .strip:
      return texts.isEmpty ? EmbeddedMetadata() : EmbeddedMetadata(edit.edited(ImageMetadata()))
    case .keepCopyright:
      (edit.keepsEXIF, edit.keepsXMP, edit.keepsIPTC, edit.keepsOnlyRights) = (true, true, true, true)
      var kept = edit.edited(ImageMetadata(exif: copyright, xmp: metadata.xmp, iptc: metadata.iptc))
      // Nothing is added to artist and copyright.
      if texts.isEmpty, edit.maxValueByteCount == nil { kept.exif = copyright }
      return EmbeddedMetadata(kept)
    case .keepAll: (edit.keepsEXIF, edit.keepsXMP, edit.keepsIPTC) = (true, true, true)
    case .selected:
      edit.keepsEXIF = configuration.keepEXIF ?? false
      edit.keepsXMP = configuration.keepXMP ?? false
      edit.keepsIPTC = configuration.keepIPTC ?? false
      edit.keepsLocation = configuration.keepLocation ?? false
      edit.keepsSerialNumbers = configuration.keepSerialNumbers ?? false
    }
    var source = metadata
    // Artist and copyright may come from texts of a PNG.
    if source.exif.isEmpty { source.exif = copyright }
    return EmbeddedMetadata(edit.edited(source))
  }
}

extension EmbeddedMetadata {
  fileprivate init(_ metadata: ImageMetadata) {
    self.init(exif: metadata.exif, xmp: metadata.xmp, iptc: metadata.iptc)
  }
}
