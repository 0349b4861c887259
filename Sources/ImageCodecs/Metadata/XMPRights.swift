/// The parts of an XMP packet that state who created an image, who owns it, and how it may be used.
///
/// Properties that state anything else are left out, with all that they contain. Source: IPTC Photo Metadata Standard, and XMP Rights
/// Management of ISO 16684-1.
enum XMPRights {
  /// Elements that contain properties, but are none.
  private static let frame: Set<String> = ["x:xmpmeta", "x:xapmeta", "rdf:RDF", "rdf:Description"]

  private static let maxFrameDepth = 3

  /// Returns whether an element is kept.
  /// - `open`: the names of the elements around it, all of which are kept.
  static func includes(
    _ name: ArraySlice<UInt8>, in open: [ArraySlice<UInt8>], _ namespaces: XMPNamespaces
  ) -> Bool {
    guard areFrame(open) else { return isPart(name, namespaces) }
    return (open.count < maxFrameDepth && isFrame(name)) || (isDescription(open) && isRight(name, namespaces))
  }

  /// Returns whether an attribute of a kept element is kept.
  /// - `element`: the names of the element and of those around it.
  static func includes(
    attribute name: ArraySlice<UInt8>, of element: [ArraySlice<UInt8>], _ namespaces: XMPNamespaces
  ) -> Bool {
    guard areFrame(element) else { return isDeclaration(name) || isPart(name, namespaces) }
    return isDeclaration(name) || (isDescription(element) && isRight(name, namespaces))
  }

  /// Returns whether a text is kept.
  /// - `open`: the names of the elements around it.
  static func includesText(in open: [ArraySlice<UInt8>]) -> Bool { !areFrame(open) }

  /// Returns the packet of what is kept; `nil` if it has no property.
  static func packet(_ kept: [UInt8]) -> [UInt8]? {
    var reader = XMLReader(kept)
    while let token = reader.next() {
      guard case .start(let name, let attributes, _) = token else { continue }
      if !isFrame(name) || attributes.contains(where: { !isDeclaration($0.name) }) {
        return XMPEditor.wrapper.begin + kept + XMPEditor.wrapper.end
      }
    }
    return nil
  }

  /// Whether an attribute declares a namespace, or names what the properties describe.
  private static func isDeclaration(_ name: ArraySlice<UInt8>) -> Bool {
    name.elementsEqual("xmlns".utf8) || name.starts(with: "xmlns:".utf8) || name.elementsEqual("rdf:about".utf8)
  }

  private static func isFrame(_ name: ArraySlice<UInt8>) -> Bool {
    frame.contains(String(decoding: name, as: UTF8.self))
  }

  private static func areFrame(_ open: [ArraySlice<UInt8>]) -> Bool {
    open.count <= maxFrameDepth && open.allSatisfy(isFrame)
  }

  private static func isDescription(_ open: [ArraySlice<UInt8>]) -> Bool {
    open.suffix(2).map { String(decoding: $0, as: UTF8.self) } == ["rdf:RDF", "rdf:Description"]
  }

  /// Whether an element or attribute within a property is a part of it, and no property of another kind.
  private static func isPart(_ name: ArraySlice<UInt8>, _ namespaces: XMPNamespaces) -> Bool {
    let (prefix, _) = XMPNamespaces.parts(of: name)
    if ["rdf", "xml"].contains(String(decoding: prefix, as: UTF8.self)) { return true }
    switch namespaces.kind(of: prefix) {
    case .rights, .iptcCore: return true
    case .dublinCore, .photoshop, .tiff, .dataBehindImage, .position, .other: return false
    }
  }

  /// Whether a property, or an attribute that stands for one, states rights.
  private static func isRight(_ name: ArraySlice<UInt8>, _ namespaces: XMPNamespaces) -> Bool {
    let (prefix, localName) = XMPNamespaces.parts(of: name)
    let local = String(decoding: localName, as: UTF8.self)
    return switch namespaces.kind(of: prefix) {
    case .rights: true
    case .dublinCore: ["creator", "rights", "publisher", "contributor"].contains(local)
    case .photoshop: ["Credit", "AuthorsPosition"].contains(local)
    case .iptcCore: local == "CreatorContactInfo"
    case .tiff: ["Artist", "Copyright"].contains(local)
    case .dataBehindImage, .position, .other: false
    }
  }
}
