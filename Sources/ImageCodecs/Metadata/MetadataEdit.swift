package import Fields

/// The metadata that a result keeps of its image, and that is written to it.
package struct MetadataEdit: Sendable, Hashable {
  /// Whether EXIF is kept.
  package var keepsEXIF = false
  /// Whether XMP is kept.
  package var keepsXMP = false
  /// Whether IPTC is kept.
  package var keepsIPTC = false
  /// Whether of XMP and IPTC only the creator, the copyright and the terms of use are kept.
  package var keepsOnlyRights = false
  /// Whether the position at which a photograph was taken is kept.
  package var keepsLocation = false
  /// Whether serial numbers and the owner of a camera are kept.
  package var keepsSerialNumbers = false
  /// The width of the result in pixels; `nil` if it is not known in advance.
  package var width: Int?
  /// The height of the result in pixels; `nil` if it is not known in advance.
  package var height: Int?
  /// Whether the colors of the result are sRGB.
  package var isSRGB = true
  /// The texts to write.
  package var texts = MetadataTexts()
  /// The maximum size of a value in bytes, so that none contains an image; `nil` for no limit.
  package var maxValueByteCount: Int?

  /// Returns whether a value of the image may be kept.
  func allowsValue(byteCount: Int) -> Bool { byteCount <= maxValueByteCount ?? .max }

  /// Returns the metadata of a result.
  ///
  /// Malformed metadata is left out; nothing in it causes a trap, and the result has at most its size, except for the
  /// texts.
  package func edited(_ source: ImageMetadata) -> ImageMetadata {
    var result = ImageMetadata()
    result.exif = EXIFEditor(edit: self).edited(keepsEXIF ? source.exif : [])
    result.xmp = XMPEditor(edit: self).edited(keepsXMP ? source.xmp : [])
    result.iptc = IPTCEditor(edit: self).edited(keepsIPTC ? source.iptc : [])
    return result
  }
}

extension MetadataEdit {
  /// Creates an edit that keeps nothing of the image.
  package init(isSRGB: Bool, texts: MetadataTexts) { self.init(keepsEXIF: false, isSRGB: isSRGB, texts: texts) }
}

/// The metadata of an image, as stored.
package struct ImageMetadata: Sendable, Hashable {
  /// An EXIF block (TIFF); empty for none.
  package var exif: [UInt8]
  /// An XMP packet (XML in UTF-8); empty for none.
  package var xmp: [UInt8]
  /// The datasets of IPTC-IIM; empty for none.
  package var iptc: [UInt8]

  package init(exif: [UInt8] = [], xmp: [UInt8] = [], iptc: [UInt8] = []) {
    self.exif = exif
    self.xmp = xmp
    self.iptc = iptc
  }

  /// The size of all metadata in bytes.
  package var byteCount: Int { exif.count + xmp.count + iptc.count }
}

/// The texts that a result describes itself with.
package struct MetadataTexts: Sendable, Hashable {
  /// The title.
  @Exact package var title: String?
  /// The copyright notice.
  @Exact package var copyright: String?
  /// The description.
  @Exact package var description: String?

  /// Whether there is none.
  package var isEmpty: Bool { title == nil && copyright == nil && description == nil }

  package init(title: String? = nil, copyright: String? = nil, description: String? = nil) {
    self.title = title
    self.copyright = copyright
    self.description = description
  }
}
