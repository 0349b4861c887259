/// Leaves in an XMP packet only what describes a gain map, as written.
///
/// Source: ISO 16684-1 (XMP), sections 7 and 9.
struct GainMapXMP {
  /// The maximum size in bytes of a value, far above that of any number.
  private static let maxValueByteCount = 256
  private static let maxDepth = 32
  private static let minValueDepth = 3

  /// The namespaces of the packet itself, and of the kind of the auxiliary image, which Apple states.
  private static let namespaces: Set<String> = [
    "adobe:ns:meta/", "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://ns.apple.com/pixeldatainfo/1.0/",
    GainMapMetadata.adobeNamespace,
  ]
  /// The beginning of those with which Apple describes maps.
  private static let appleNamespaces = "http://ns.apple.com/HDR"

  private var prefixes: Set<String> = ["xml"]
  private var output: [UInt8] = []
  private var open: [ArraySlice<UInt8>] = []
  /// The number of elements around the one that is left out.
  private var droppedDepth: Int?
  private var isChanged = false

  /// Returns the packet with the properties of gain maps alone; the packet itself if it has no others.
  /// - Returns: A packet that is not larger; `nil` if the packet is not well-formed.
  static func cleaned(_ packet: [UInt8]) -> [UInt8]? {
    var cleaner = GainMapXMP()
    guard cleaner.readPrefixes(packet), cleaner.copy(packet) else { return nil }
    guard cleaner.isChanged else { return packet }
    // It is if attributes lack the spaces between them.
    return cleaner.output.count <= packet.count ? cleaner.output : nil
  }

  /// Collects the prefixes of the namespaces that stay, and returns whether the packet could be read.
  ///
  /// A prefix that also has another meaning is none of them.
  private mutating func readPrefixes(_ packet: [UInt8]) -> Bool {
    var reader = XMLReader(packet)
    var others: Set<String> = []
    while let token = reader.next() {
      guard case .start(_, let attributes, _) = token else { continue }
      for attribute in attributes where attribute.name.starts(with: "xmlns:".utf8) {
        let prefix = Self.text(attribute.name.dropFirst(6))
        let isKept = Self.isKept(namespace: Self.text(attribute.value))
        if isKept { prefixes.insert(prefix) } else { others.insert(prefix) }
      }
    }
    prefixes.subtract(others)
    return reader.isAtEnd
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

  private static func isKept(namespace: String) -> Bool {
    namespaces.contains(namespace) || namespace.hasPrefix(appleNamespaces)
  }

  private func isKept(_ attribute: XMLReader.Attribute) -> Bool {
    guard attribute.text.count <= Self.maxValueByteCount else { return false }
    if attribute.name.starts(with: "xmlns:".utf8) {
      return prefixes.contains(Self.text(attribute.name.dropFirst(6)))
        && Self.isKept(namespace: Self.text(attribute.value))
    }
    return isKept(name: attribute.name)
  }

  private func isKept(name: ArraySlice<UInt8>) -> Bool {
    let parts = name.split(separator: UInt8(ascii: ":"), maxSplits: 1)
    return parts.count == 2 && prefixes.contains(Self.text(parts[0]))
  }

  private static func isSpace(_ text: ArraySlice<UInt8>) -> Bool {
    text.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
  }

  /// Copies what stays, and returns whether the packet is well-formed.
  private mutating func copy(_ packet: [UInt8]) -> Bool {
    var reader = XMLReader(packet)
    while let token = reader.next() {
      switch token {
      case .text(let text):
        // A comment is an empty text. A property is in a description, which is in `rdf:RDF`.
        let isValue = open.count >= Self.minValueDepth && text.count <= Self.maxValueByteCount
        put(text, if: !text.isEmpty && (Self.isSpace(text) || isValue))
      case .instruction(let text):
        put(text, if: text.starts(with: "<?xpacket".utf8) && text.count <= Self.maxValueByteCount)
      case .start(let name, let attributes, let isEmpty): start(name, attributes, isEmpty: isEmpty)
      case .end(let name):
        guard open.popLast()?.elementsEqual(name) == true else { return false }
        if droppedDepth == nil { output += Array("</".utf8) + name + [UInt8(ascii: ">")] }
        if droppedDepth == open.count { droppedDepth = nil }
      }
      if open.count > Self.maxDepth { return false }
    }
    return reader.isAtEnd && open.isEmpty
  }

  private mutating func put(_ text: ArraySlice<UInt8>, if isKept: Bool) {
    if isKept && droppedDepth == nil { output += text } else { isChanged = true }
  }

  private mutating func start(_ name: ArraySlice<UInt8>, _ attributes: [XMLReader.Attribute], isEmpty: Bool) {
    if droppedDepth == nil && !isKept(name: name) { (droppedDepth, isChanged) = (open.count, true) }
    if droppedDepth == nil {
      let kept = attributes.filter(isKept)
      isChanged = isChanged || kept.count < attributes.count
      output += Array("<".utf8) + name
      for attribute in kept { output += Array(" ".utf8) + attribute.text }
      output += Array((isEmpty ? "/>" : ">").utf8)
    }
    if !isEmpty { open.append(name) }
    if isEmpty && droppedDepth == open.count { droppedDepth = nil }
  }
}
