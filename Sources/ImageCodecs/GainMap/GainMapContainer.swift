/// The beginning of a JPEG with a gain map behind its image: what declares the map.
///
/// It is built from the beginning of the JPEG without a map, once both sizes are known.
package struct GainMapContainer {
  /// The beginning of the JPEG, which is replaced: up to its tables.
  package private(set) var head: [UInt8] = []
  private var segments = JPEGSegments([.xmp])

  /// The maximum size of what is replaced, and of what replaces it.
  package static let maxByteCount = 4 * 65_537

  package init() {}

  /// Reads the next bytes of the JPEG, which this worker has written, until their beginning is complete.
  ///
  /// - Returns: Whether it is complete.
  package mutating func push(_ bytes: RawSpan) -> Bool {
    let read = bytes.extracting(first: max(0, Self.maxByteCount - head.count))
    head.append(read)
    segments.push(read)
    guard let end = segments.metadataEnd else { return false }
    head.removeSubrange(Int(end)...)
    return true
  }

  /// The position of the last XMP segment in `head`; empty, at its end, without one.
  private var xmp: Range<Int> {
    let last = segments.segments.last { $0.offset < head.count }
    return last.map { Int($0.offset)..<Int($0.offset) + $0.bytes.count } ?? head.count..<head.count
  }

  /// Returns the beginning of the JPEG with its map.
  /// - Parameters:
  ///   - marker: The segment with which the image declared a map of ISO 21496-1; empty without one.
  ///   - metadata: The description of the map in its header.
  ///   - byteCount: The size of the JPEG without a map.
  ///   - mapByteCount: The size of the map.
  /// - Returns: The bytes; `nil` if the XMP of the image leaves no room for the directory.
  package func beginning(
    marker: [UInt8], metadata: GainMapMetadata, byteCount: Int, mapByteCount: Int
  ) -> [UInt8]? {
    let xmp = xmp
    var result = Array(head[..<xmp.lowerBound])
    if metadata.isAdobe {
      guard let segment = directory(in: head[xmp], mapByteCount: mapByteCount) else { return nil }
      result += segment
    } else {
      result += head[xmp]
    }
    result += head[xmp.upperBound...]
    if metadata.hasISO { result += marker.isEmpty ? Self.isoMarker : marker }
    let total = byteCount - head.count + result.count + MultiPictureList.segmentByteCount
    return result + MultiPictureList.segment(at: result.count, byteCount: total, mapByteCount: mapByteCount)
  }

  /// Minimum version 0, and writer version 0.
  private static let isoMarker: [UInt8] = {
    let body = JPEGSegments.Kind.iso.name + [0, 0, 0, 0]
    return [0xFF, JPEGSegments.Kind.iso.marker, 0, UInt8(body.count + 2)] + body
  }()

  // MARK: Directory

  private static let end = Array("</rdf:RDF>".utf8)

  /// Returns the XMP segment of the image, which may be empty, with the directory of its map.
  private func directory(in segment: ArraySlice<UInt8>, mapByteCount: Int) -> [UInt8]? {
    let description = Array(Self.description(mapByteCount: mapByteCount).utf8)
    let name = JPEGSegments.Kind.xmp.name
    var packet = Array(segment.dropFirst(4 + name.count))
    if packet.isEmpty {
      packet = XMPEditor.opening + description + XMPEditor.closing
    } else if let place = packet.lastPosition(of: Self.end) {
      packet.insert(contentsOf: description, at: place)
    } else {
      return nil
    }
    let length = 2 + name.count + packet.count
    guard length <= 65_535 else { return nil }
    return [0xFF, JPEGSegments.Kind.xmp.marker, UInt8(length >> 8), UInt8(length & 0xFF)] + name + packet
  }

  /// The properties of GContainer, which Ultra HDR prescribes.
  private static func description(mapByteCount: Int) -> String {
    let namespaces =
      "xmlns:Container=\"http://ns.google.com/photos/1.0/container/\" "
      + "xmlns:Item=\"http://ns.google.com/photos/1.0/container/item/\" "
      + "xmlns:hdrgm=\"\(GainMapMetadata.adobeNamespace)\""
    func item(_ attributes: String) -> String {
      "<rdf:li rdf:parseType=\"Resource\"><Container:Item Item:Mime=\"image/jpeg\" \(attributes)/></rdf:li>"
    }
    let items =
      item("Item:Semantic=\"Primary\"") + item("Item:Semantic=\"GainMap\" Item:Length=\"\(mapByteCount)\"")
    return "<rdf:Description rdf:about=\"\" \(namespaces) hdrgm:Version=\"1.0\"><Container:Directory><rdf:Seq>"
      + "\(items)</rdf:Seq></Container:Directory></rdf:Description>"
  }
}

extension [UInt8] {
  /// Returns the position at which `wanted` occurs last.
  fileprivate func lastPosition(of wanted: [UInt8]) -> Int? {
    guard count >= wanted.count else { return nil }
    return (0...count - wanted.count).last { self[$0..<$0 + wanted.count].elementsEqual(wanted) }
  }
}
