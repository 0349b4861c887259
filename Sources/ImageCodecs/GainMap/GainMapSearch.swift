/// Finds where the gain map of a JPEG may be, and what it says about it, from the bytes of its header.
///
/// The file lists the images behind its first one in a segment of the multi-picture format, or in a directory of
/// GContainer, whose sizes count from the end of the first image. Places of both are considered, as editors of metadata
/// lose the first list or let it go stale. Whether an image is a gain map is known once its own header has been read;
/// see `GainMapMetadata`. Sources: CIPA DC-007 (multi-picture format), section 5.2; Ultra HDR image format 1.1; ISO
/// 21496-1, annex C.
package struct GainMapSearch: Sendable {
  /// The place of an image behind the first one.
  package struct Place: Sendable, Hashable {
    /// The position of its first byte in the file.
    package var offset: UInt64
    /// Its size in bytes.
    package var byteCount: UInt64

    /// Creates a place.
    package init(offset: UInt64, byteCount: UInt64) { (self.offset, self.byteCount) = (offset, byteCount) }
  }

  /// The maximum number of images that are considered.
  private static let maxPlaceCount = 8

  private var segments = JPEGSegments([.exif, .xmp, .iso, .multiPicture], followsScans: true)
  /// The number of segments whose lists were read.
  private var readCount = 0
  /// The images of the multi-picture segment, in the order of their places.
  private var listed: [Place] = []
  /// The map of the directory.
  private var contained: ContainerDirectory.Place?

  package init() {}

  /// The number of bytes that the search stores.
  package var byteCount: Int { segments.byteCount }

  /// Reads the next bytes of the file.
  package mutating func push(_ bytes: RawSpan) { push(bytes) { _ in } }

  /// Reads the next bytes of the file.
  /// - Parameters:
  ///   - bytes: The next bytes.
  ///   - charge: Called with a number of bytes before they are stored.
  /// - Throws: The errors of `charge`.
  package mutating func push<Failure: Error>(
    _ bytes: RawSpan, charge: (Int) throws(Failure) -> Void
  ) throws(Failure) {
    try segments.push(bytes, charge: charge)
    for segment in segments.segments[readCount...] { readList(segment) }
    readCount = segments.segments.count
  }

  /// Reads the bytes at `position` of the file, as far as they were not read before, if they help to find the map.
  ///
  /// The header was read, and no byte before `position` was left out. Nothing is stored.
  package mutating func follow(_ bytes: RawSpan, at position: UInt64) {
    guard isFollowing, segments.position >= position else { return }
    push(bytes.extracting(droppingFirst: Int(clamping: segments.position - position)))
  }

  /// Whether the end of the image must be found, as the place of the map counts from there.
  package var isFollowing: Bool { contained != nil && segments.imageEnd == nil && !segments.isOver }

  private mutating func readList(_ segment: JPEGSegments.Segment) {
    switch segment.kind {
    case .multiPicture where listed.isEmpty: listed = Self.places(of: segment)
    case .xmp where contained == nil:
      contained = ContainerDirectory.gainMap(in: Array(segment.body.dropFirst(segment.kind.name.count)))
    case .exif, .iso, .multiPicture, .profile, .xmp: break
    }
  }

  /// Returns the images of a multi-picture segment that may be a gain map.
  private static func places(of segment: JPEGSegments.Segment) -> [Place] {
    // Offsets count from the byte order of the list.
    let start = segment.offset + 4 + UInt64(segment.kind.name.count)
    return MultiPictureList.images(of: Array(segment.body.dropFirst(segment.kind.name.count)), maxCount: maxPlaceCount)
      .filter { $0.mayBeGainMap && $0.offset > 0 && $0.byteCount > 0 }
      .map { Place(offset: start + UInt64($0.offset), byteCount: UInt64($0.byteCount)) }
      .sorted { $0.offset < $1.offset }
  }

  /// Whether the map may be behind `position`.
  package func mayHaveMap(behind position: UInt64) -> Bool {
    contained != nil || listed.contains { $0.offset >= position }
  }

  /// The position at which the image ends for the sake of its map, at `position` or behind it; `nil` if it goes on, or
  /// while that is not known.
  package func imageEnd(behind position: UInt64) -> UInt64? {
    if isFollowing { return nil }
    if contained != nil, let end = segments.imageEnd, end >= position { return end }
    return listed.first { $0.offset >= position }?.offset
  }

  /// Whether the image is known to end at `position`, whatever its decoder still waits for.
  package func isImageEnd(_ position: UInt64) -> Bool { contained != nil && segments.imageEnd == position }

  /// The images that may be a gain map, in the order of their places; without that of the directory until the end of
  /// the image is found.
  ///
  /// Where both lists name the same place, the larger size counts, as a map ends with its own data.
  package var places: [Place] {
    guard let contained, let end = segments.imageEnd else { return listed }
    var places = listed.filter { $0.offset >= end }
    let place = Place(offset: end + contained.distance, byteCount: contained.byteCount)
    if let index = places.firstIndex(where: { $0.offset == place.offset }) {
      places[index].byteCount = max(places[index].byteCount, place.byteCount)
    } else {
      places.append(place)
    }
    return places.sorted { $0.offset < $1.offset }
  }

  /// The segment with which the file declares a gain map of ISO 21496-1; empty without one.
  ///
  /// It has two versions and nothing else: more would be metadata that nobody asked to keep.
  package var marker: [UInt8] {
    let versionByteCount = 4
    let segment = segments.segments.first { $0.kind == .iso }
    return segment.flatMap { $0.body.count == $0.kind.name.count + versionByteCount ? $0.bytes : nil } ?? []
  }

  /// Whether the header of the file has ended.
  var isHeaderDone: Bool { segments.isDone }
  /// The number of bytes that were read, up to the end of the image.
  var position: UInt64 { segments.position }

  /// The EXIF block of the image, from its byte order on; empty without one.
  var exif: [UInt8] {
    let segment = segments.segments.first { $0.kind == .exif }
    return segment.map { Array($0.body.dropFirst($0.kind.name.count + 1)) } ?? []
  }

  /// Whether the file itself declares that it has a gain map.
  ///
  /// Files of Apple do not: they have a camera's note instead.
  package var isDeclared: Bool {
    contained != nil
      || segments.segments.contains { segment in
        switch segment.kind {
        case .iso: true
        case .xmp: segment.bytes.contains(text: GainMapMetadata.adobeNamespace)
        case .exif: segment.bytes.contains(text: "Apple iOS")
        case .multiPicture, .profile: false
        }
      }
  }
}

/// The description of a gain map in its header.
package struct GainMapMetadata: Sendable {
  static let adobeNamespace = "http://ns.adobe.com/hdr-gain-map/1.0/"
  private static let appleNamespace = "http://ns.apple.com/HDRGainMap/1.0/"

  private var found = JPEGSegments([.xmp, .iso, .profile])

  /// The maximum number of bytes that are stored.
  package static var maxByteCount: Int { JPEGSegments.maxByteCount }

  package init() {}

  /// Creates a description for a map that is no JPEG.
  /// - Parameters:
  ///   - iso: The metadata of ISO 21496-1, from the versions on.
  ///   - properties: Attributes of XMP in the namespace of Adobe; empty without XMP.
  package init(iso: [UInt8], properties: String) {
    let description =
      "<rdf:Description rdf:about=\"\" xmlns:hdrgm=\"\(Self.adobeNamespace)\" hdrgm:Version=\"1.0\" \(properties)/>"
    let xmp = XMPEditor.opening + Array(description.utf8) + XMPEditor.closing
    let segments = (properties.isEmpty ? [] : Self.bytes(of: .xmp, xmp)) + Self.bytes(of: .iso, iso)
    ([0xFF, 0xD8] + segments).withRawSpan { push($0) }
  }

  /// Reads the next bytes of the map.
  package mutating func push(_ bytes: RawSpan) { found.push(bytes) }

  /// The segments that a result contains as they are; of XMP only what describes a gain map.
  package var segments: [UInt8] { kept.flatMap(\.bytes) }

  private var kept: [JPEGSegments.Segment] {
    found.segments.compactMap { segment in
      switch segment.kind {
      case .xmp: Self.cleaned(segment)
      case .exif, .iso, .multiPicture, .profile: segment
      }
    }
  }

  /// Returns a segment of XMP with the properties of gain maps alone; `nil` if it has none.
  private static func cleaned(_ segment: JPEGSegments.Segment) -> JPEGSegments.Segment? {
    guard let packet = GainMapXMP.cleaned(Array(segment.body.dropFirst(segment.kind.name.count))),
      [adobeNamespace, appleNamespace].contains(where: { packet.contains(text: $0) })
    else { return nil }
    var cleaned = segment
    cleaned.bytes = bytes(of: segment.kind, packet)
    return cleaned
  }

  /// Returns a segment, from its marker on; one that is cleaned is not larger than it was.
  private static func bytes(of kind: JPEGSegments.Kind, _ body: [UInt8]) -> [UInt8] {
    let length = 2 + kind.name.count + body.count
    return [0xFF, kind.marker, UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)] + kind.name + body
  }

  /// Whether the header of the map has ended.
  var isDone: Bool { found.isDone }

  /// The size in pixels that the header of the map states; `nil` until that is read.
  var frameSize: (width: Int, height: Int)? { found.frameSize }

  /// The metadata of ISO 21496-1, from the versions on; `nil` without any.
  package var iso: [UInt8]? {
    found.segments.first { $0.kind == .iso }.map { Array($0.body.dropFirst($0.kind.name.count)) }
  }

  /// The XMP of the map, with what precedes each packet.
  package var xmpBytes: [UInt8] { xmp.flatMap(\.bytes) }

  /// Whether the image is described as a gain map.
  package var isGainMap: Bool { hasISO || isAdobe || hasXMP(Self.appleNamespace) }

  /// Whether it is described as ISO 21496-1 specifies.
  package var hasISO: Bool { iso != nil }

  /// Whether it is described in XMP as Adobe and Ultra HDR specify, which needs a directory in the image itself.
  package var isAdobe: Bool { hasXMP(Self.adobeNamespace) }

  private func hasXMP(_ namespace: String) -> Bool { xmp.contains { $0.bytes.contains(text: namespace) } }

  private var xmp: [JPEGSegments.Segment] { kept.filter { $0.kind == .xmp } }
}
