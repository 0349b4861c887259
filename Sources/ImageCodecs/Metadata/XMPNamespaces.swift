/// The namespaces that the open elements of an XMP packet declare.
///
/// Programs may choose any prefix for a namespace. One that is not declared means what it usually does.
struct XMPNamespaces {
  /// The subject of the properties in a namespace.
  enum Kind {
    /// Describes data behind the image, which a result does not have: gain maps, depth maps, and videos.
    case dataBehindImage
    /// The place where a photograph was taken.
    case position
    /// Titles, rights and descriptions.
    case dublinCore
    /// Owners, licensors and terms of use.
    case rights
    /// Credits, among other things.
    case photoshop
    /// How to contact the creator, among other things.
    case iptcCore
    /// The tags of TIFF: artist and copyright, among other things.
    case tiff
    case other
  }

  private static let maxCount = 256
  /// Beginnings of names.
  private static let names: [(String, Kind)] = [
    ("http://ns.google.com/photos/", .dataBehindImage), ("http://ns.apple.com/", .dataBehindImage),
    ("http://ns.adobe.com/hdr-gain-map/", .dataBehindImage), ("http://www.w3.org/2003/01/geo/", .position),
    ("http://purl.org/dc/elements/", .dublinCore), ("http://ns.adobe.com/xap/1.0/rights/", .rights),
    ("http://ns.useplus.org/", .rights), ("http://creativecommons.org/ns#", .rights),
    ("http://ns.adobe.com/tiff/1.0/", .tiff), ("http://ns.adobe.com/photoshop/", .photoshop),
    ("http://iptc.org/std/Iptc4xmpCore/", .iptcCore),
  ]
  private static let usualPrefixes: [String: Kind] = [
    "hdrgm": .dataBehindImage, "HDRGainMap": .dataBehindImage, "Container": .dataBehindImage,
    "GContainer": .dataBehindImage, "Item": .dataBehindImage, "GDepth": .dataBehindImage, "GImage": .dataBehindImage,
    "GAudio": .dataBehindImage, "GPano": .dataBehindImage, "GCamera": .dataBehindImage, "Device": .dataBehindImage,
    "Camera": .dataBehindImage, "apdi": .dataBehindImage, "depthData": .dataBehindImage,
    "portraitEffectsMatteInfo": .dataBehindImage, "geo": .position, "dc": .dublinCore,
  ]

  private var declared: [(depth: Int, prefix: ArraySlice<UInt8>, kind: Kind)] = []

  /// Returns the prefix, empty for none, and the local name of a tag or an attribute.
  static func parts(of name: ArraySlice<UInt8>) -> (prefix: ArraySlice<UInt8>, local: ArraySlice<UInt8>) {
    guard let colon = name.firstIndex(of: UInt8(ascii: ":")) else { return (name.prefix(0), name) }
    return (name[..<colon], name[(colon + 1)...])
  }

  /// Notes the declarations of an element at a depth; returns `false` if there are too many.
  mutating func open(_ attributes: [XMLReader.Attribute], depth: Int) -> Bool {
    for attribute in attributes {
      let (prefix, local) = Self.parts(of: attribute.name)
      guard prefix.elementsEqual("xmlns".utf8) || attribute.name.elementsEqual("xmlns".utf8) else { continue }
      let kind = Self.names.first { attribute.value.starts(with: $0.0.utf8) }?.1 ?? .other
      declared.append((depth, prefix.isEmpty ? prefix : local, kind))
    }
    return declared.count <= Self.maxCount
  }

  /// Forgets the declarations of the element at a depth.
  mutating func close(depth: Int) {
    while let last = declared.last, last.depth >= depth { declared.removeLast() }
  }

  /// Returns the kind of the namespace of a prefix.
  func kind(of prefix: ArraySlice<UInt8>) -> Kind {
    let usual = Self.usualPrefixes[String(decoding: prefix, as: UTF8.self)] ?? .other
    guard let declared = declared.last(where: { $0.prefix.elementsEqual(prefix) })?.kind else { return usual }
    // Some programs misspell names, so that a prefix alone is enough to leave out what may reveal something.
    return declared == .other && usual != .dublinCore ? usual : declared
  }
}
