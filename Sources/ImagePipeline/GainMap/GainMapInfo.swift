internal import ImageCodecs
internal import LibC

/// The properties of the gain map of an image.
package struct GainMapInfo: Sendable, Hashable {
  /// The way in which a map is described.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    /// As ISO 21496-1 specifies, whatever else describes it.
    case iso
    /// In XMP of Adobe, as Ultra HDR specifies.
    case ultraHDR = "ultra_hdr"
    /// In XMP of Apple and the camera's note.
    case apple
  }

  /// The way in which the map is described.
  package var kind: Kind
  /// The size of the map, in the orientation of its image.
  package var size: PixelSize
  /// How much brighter than white the brightest parts can become; `nil` if it is not known.
  package var headroom: Double?

  /// Creates the properties of a map.
  package init(kind: Kind, size: PixelSize, headroom: Double?) {
    (self.kind, self.size, self.headroom) = (kind, size, headroom)
  }

  init(_ map: StoredGainMap, exif: [UInt8]) {
    let size = PixelSize(width: map.width, height: map.height)
    switch map.kind {
    case .iso: self.init(kind: .iso, size: size, headroom: Self.headroom(iso: map.description))
    case .apple:
      let apple = AppleGainMap(xmp: map.description, exif: exif)
      self.init(kind: .apple, size: size, headroom: apple?.headroom)
    }
  }

  init(_ map: ListedGainMap) {
    let size = PixelSize(width: map.width, height: map.height)
    let (metadata, xmp) = (map.metadata, map.metadata.xmpBytes)
    if let iso = metadata.iso {
      self.init(kind: .iso, size: size, headroom: Self.headroom(iso: iso))
    } else if metadata.isAdobe {
      let stops = XMPNumber.find("HDRCapacityMax", in: xmp)
      self.init(kind: .ultraHDR, size: size, headroom: stops.flatMap(Self.headroom))
    } else {
      self.init(kind: .apple, size: size, headroom: AppleGainMap(xmp: xmp, exif: map.exif)?.headroom)
    }
  }

  /// Returns the larger headroom of the image and the brighter one.
  /// - `iso`: the metadata, from the versions on.
  private static func headroom(iso: [UInt8]) -> Double? {
    func number(_ place: Int) -> Double {
      Double(iso[place..<place + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
    }
    guard iso.count >= 21 else { return nil }
    return headroom(stops: max(number(5) / number(9), number(13) / number(17)))
  }

  /// The headrooms that are plausible, as powers of two.
  private static let stops = 0.0...16

  private static func headroom(stops: Double) -> Double? { self.stops ~= stops ? exp2(stops) : nil }

  /// Returns the map as its image is displayed.
  /// - `orientation`: the EXIF orientation of the image.
  package func displayed(orientation: Int) -> GainMapInfo {
    var map = self
    map.size = size.rotated(by: Orientation(rawValue: orientation) ?? .up)
    return map
  }
}

extension ImageReader {
  /// Returns the gain map of a JPEG, as stored.
  /// - Parameter file: The file, or its beginning.
  /// - Returns: `nil` if there is none, or if it is not in the bytes.
  package static func gainMap(of file: RawSpan) -> GainMapInfo? {
    ListedGainMap.find(in: file).map { GainMapInfo($0) }
  }

  /// As `gainMap(of:)`, for a file of which only parts are read; see `ListedGainMap.find`.
  package static func gainMap(_ read: (_ offset: Int, _ byteCount: Int) -> [UInt8]) -> GainMapInfo? {
    ListedGainMap.find(read).map { GainMapInfo($0) }
  }

  /// Adds the gain map of an HEIC or AVIF to the properties of the image in the plan.
  mutating func describeGainMap(_ plan: inout ImagePlan) throws(PipelineError) {
    guard isInspection else { return }
    let (map, exif) = try withDecoder { decoder in (decoder.gainMap, decoder.metadata.exif) }
    guard let map else { return }
    for index in plan.renditions.indices {
      plan.renditions[index] = plan.renditions[index].map { plan in
        var plan = plan
        plan.input.gainMap = GainMapInfo(map, exif: exif).displayed(orientation: plan.input.orientation)
        return plan
      }
    }
  }
}
