/// Removes from an XMP packet what no longer holds for a result, and adds texts.
///
/// The packet is copied tag by tag. A packet that is not well-formed, or has a document type or CDATA, is left out. Source:
/// ISO 16684-1 (XMP), sections 7 and 9.
struct XMPEditor {
  /// The maximum size of a packet: that of a JPEG segment.
  static let maxByteCount = 65_502
  private static let maxDepth = 64

  let edit: MetadataEdit

  /// Properties by their local name, whatever the prefix: structure of the file, and references to data that is lost.
  private static let structural: Set<String> = [
    "Orientation", "ImageWidth", "ImageLength", "ImageHeight", "PixelXDimension", "PixelYDimension", "ExifImageWidth",
    "ExifImageHeight", "ColorSpace", "ICCProfile", "Thumbnails", "HasExtendedXMP", "provenance", "Regions",
    "ImageRegion", "MakerNote", "BitsPerSample", "Compression", "PhotometricInterpretation", "SamplesPerPixel",
    "PlanarConfiguration", "YCbCrSubSampling", "YCbCrPositioning",
  ]
  /// Returns the edited packet; empty if nothing is left of it.
  func edited(_ packet: [UInt8]) -> [UInt8] {
    let properties = properties
    if let edited = filtered(packet, adding: properties), edited.count <= Self.maxByteCount { return edited }
    guard !properties.isEmpty else { return [] }
    let new = Self.opening + properties + Self.closing
    return new.count <= Self.maxByteCount ? new : []
  }

  /// The instructions around a packet.
  static let wrapper = (
    begin: Array("<?xpacket begin=\"\u{FEFF}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>".utf8),
    end: Array("<?xpacket end=\"w\"?>".utf8)
  )
  /// The beginning and the end of a packet.
  static let opening =
    wrapper.begin
    + Array(
      ("<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">"
        + "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">").utf8)
  static let closing = Array("</rdf:RDF></x:xmpmeta>".utf8) + wrapper.end

  /// The description that contains the texts; empty without texts.
  private var properties: [UInt8] {
    let texts = edit.texts
    let items = [("title", texts.title), ("rights", texts.copyright), ("description", texts.description)]
    let elements = items.compactMap { name, text in
      text.map {
        "<dc:\(name)><rdf:Alt><rdf:li xml:lang=\"x-default\">\(Self.escaped($0))</rdf:li></rdf:Alt></dc:\(name)>"
      }
    }
    guard !elements.isEmpty else { return [] }
    let namespace = "xmlns:dc=\"http://purl.org/dc/elements/1.1/\""
    return Array("<rdf:Description rdf:about=\"\" \(namespace)>\(elements.joined())</rdf:Description>".utf8)
  }

  private static func escaped(_ text: String) -> String {
    // By scalars, as a character may be one of these with an accent.
    text.unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      default: result.unicodeScalars.append(scalar)
      }
    }
  }

  /// Whether a property, by its local name in lowercase, is a position: that of EXIF, or one of those of drones, maps and
  /// observations, some of which are misspelled.
  private static func isPosition(_ name: String) -> Bool {
    name.hasPrefix("gps") || name.hasPrefix("lrftarget")
      || ["latitude", "longitude", "longtitude"].contains(where: name.hasSuffix)
      || name == "absolutealtitude"
  }

  /// Whether a property, by its local name in lowercase, identifies the camera, the lens, the drone, its owner or the image.
  private static func isIdentifier(_ name: String) -> Bool {
    name.hasSuffix("serialnumber") || ["ownername", "cameraownername", "imageuniqueid"].contains(name)
  }

  /// Returns whether a property is left out.
  private func isDropped(_ name: ArraySlice<UInt8>, _ namespaces: XMPNamespaces) -> Bool {
    let (prefix, localName) = XMPNamespaces.parts(of: name)
    if prefix.elementsEqual("xmlns".utf8) || name.elementsEqual("xmlns".utf8) { return false }
    let local = String(decoding: localName, as: UTF8.self)
    if Self.structural.contains(local) { return true }
    let lowercased = local.lowercased()
    if !edit.keepsLocation && Self.isPosition(lowercased) { return true }
    if !edit.keepsSerialNumbers && Self.isIdentifier(lowercased) { return true }
    switch namespaces.kind(of: prefix) {
    case .dataBehindImage: return true
    case .position: return !edit.keepsLocation
    case .dublinCore:
      let texts = edit.texts
      return local == "format"  // of the file that the image came from
        || (local == "title" && texts.title != nil) || (local == "rights" && texts.copyright != nil)
        || (local == "description" && texts.description != nil)
    case .rights, .photoshop, .iptcCore, .tiff, .other: return false
    }
  }

  /// Copies the packet; `nil` if it is not well-formed.
  private func filtered(_ packet: [UInt8], adding properties: [UInt8]) -> [UInt8]? {
    guard !packet.isEmpty, String(validating: packet, as: UTF8.self) != nil else { return nil }
    var reader = XMLReader(packet)
    var output: [UInt8] = []
    var open: [ArraySlice<UInt8>] = []
    var namespaces = XMPNamespaces()
    var droppedDepth: Int?
    var isComplete = false
    while let token = reader.next() {
      switch token {
      case .text(let text):
        if droppedDepth == nil && !open.isEmpty && keeps(text: text, in: open) { output += text }
      case .instruction(let text):
        if droppedDepth == nil && !edit.keepsOnlyRights && keeps(text: text, in: open) { output += text }
      case .start(let name, let attributes, let isEmpty):
        guard namespaces.open(attributes, depth: open.count) else { return nil }
        if droppedDepth == nil && !keeps(name, in: open, namespaces) { droppedDepth = open.count }
        if droppedDepth == nil {
          output += tag(name, attributes, in: open, namespaces) + Array((isEmpty ? "/>" : ">").utf8)
        }
        if isEmpty { namespaces.close(depth: open.count) } else { open.append(name) }
        if isEmpty && droppedDepth == open.count { droppedDepth = nil }
        if open.count > Self.maxDepth { return nil }
      case .end(let name):
        guard open.popLast()?.elementsEqual(name) == true else { return nil }
        if droppedDepth == nil {
          // At the end of the packet, and not of an RDF within a property.
          if name.elementsEqual("rdf:RDF".utf8), open.count <= 1, !isComplete {
            output += properties
            isComplete = true
          }
          output += Array("</".utf8) + name + [UInt8(ascii: ">")]
        }
        namespaces.close(depth: open.count)
        if droppedDepth == open.count { droppedDepth = nil }
      }
    }
    guard reader.isAtEnd, open.isEmpty, isComplete else { return nil }
    return edit.keepsOnlyRights ? XMPRights.packet(output) : output
  }

  private func keeps(_ name: ArraySlice<UInt8>, in open: [ArraySlice<UInt8>], _ namespaces: XMPNamespaces) -> Bool {
    !isDropped(name, namespaces) && (!edit.keepsOnlyRights || XMPRights.includes(name, in: open, namespaces))
  }

  private func keeps(text: ArraySlice<UInt8>, in open: [ArraySlice<UInt8>]) -> Bool {
    edit.allowsValue(byteCount: text.count) && (!edit.keepsOnlyRights || XMPRights.includesText(in: open))
  }

  /// Returns a tag with its attributes that remain, without its end.
  /// - `open`: the names of the elements around it.
  private func tag(
    _ name: ArraySlice<UInt8>, _ attributes: [XMLReader.Attribute], in open: [ArraySlice<UInt8>],
    _ namespaces: XMPNamespaces
  ) -> [UInt8] {
    var tag = [UInt8(ascii: "<")] + name
    for attribute in attributes
    where !isDropped(attribute.name, namespaces) && edit.allowsValue(byteCount: attribute.text.count)
      && (!edit.keepsOnlyRights || XMPRights.includes(attribute: attribute.name, of: open + [name], namespaces))
    {
      let identifiesDocument = edit.keepsOnlyRights && attribute.name.elementsEqual("rdf:about".utf8)
      tag.append(UInt8(ascii: " "))
      tag += identifiesDocument ? Array("rdf:about=\"\"".utf8)[...] : attribute.text
    }
    return tag
  }
}
