package import Fields
internal import ImageCodecs

/// The fields for the color space and the metadata of the result.
extension ProcessingConfiguration {
  /// The fields, in the order of the contract.
  package static let metadataFields: [Field<ProcessingConfiguration>] = [
    Field(
      "color_space", \.colorSpace, takes: "space",
      help: "Choose the color space of the result; 'keep' embeds the image's profile. Default: srgb."),
    Field(
      "gain_map", \.gainMap, takes: "policy",
      help: "Choose whether a JPEG result keeps the HDR gain map of a JPEG, HEIC or AVIF. Default: drop."),
    Field("metadata", \.metadata, takes: "policy", help: "Choose the metadata to keep. Default: strip."),
    Field("keep_exif", \.keepEXIF, help: "With --metadata selected: Keep EXIF. Default: false."),
    Field("keep_xmp", \.keepXMP, help: "With --metadata selected: Keep XMP. Default: false."),
    Field("keep_iptc", \.keepIPTC, help: "With --metadata selected: Keep IPTC in JPEG results. Default: false."),
    Field(
      "keep_location", \.keepLocation,
      help: "With --metadata selected: Keep the position in EXIF and XMP. Default: false."),
    Field(
      "keep_serial_numbers", \.keepSerialNumbers,
      help: "With --metadata selected: Keep serial numbers and the owner of the camera in EXIF and XMP. Default: false."
    ),
    Field("metadata_title", \.metadataTitle, text, takes: "text", help: "Set the title of the result. Default: none."),
    Field(
      "metadata_copyright", \.metadataCopyright, text, takes: "text",
      help: "Set the copyright notice of the result. Default: none."),
    Field(
      "metadata_description", \.metadataDescription, text, takes: "text",
      help: "Set the description of the result. Default: none."),
  ]

  /// The maximum size of a text in bytes.
  package static let maxTextByteCount = 2000

  /// A text that XML can contain.
  private static let text = FieldRule<String>.values(
    "1 to \(maxTextByteCount) bytes without control characters other than tabs and line feeds"
  ) {
    text in
    (1...maxTextByteCount).contains(text.utf8.count)
      && text.unicodeScalars.allSatisfy { scalar in
        (scalar.properties.generalCategory != .control && scalar.value != 0xFFFE && scalar.value != 0xFFFF)
          || scalar == "\n" || scalar == "\t"
      }
  }

  /// Whether the metadata of the image is needed.
  package var readsMetadata: Bool { metadata != nil && metadata != .strip }
}
