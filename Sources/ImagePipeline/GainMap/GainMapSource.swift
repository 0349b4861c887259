internal import ImageCodecs

/// The places in a file at which its gain map is, or may be.
enum GainMapSource {
  /// A JPEG behind the image, at one of the places that a search finds.
  case listed(GainMapSearch)
  /// An image among the items of the file.
  case stored(DescribedGainMap)
  /// The same, if it cannot be used.
  case unusable(GainMapObstacle)

  /// The reason why the map cannot be used, if it is known.
  var obstacle: GainMapObstacle? {
    if case .unusable(let obstacle) = self { obstacle } else { nil }
  }

  /// Whether the file declares that it has a map.
  var isDeclared: Bool {
    switch self {
    case .listed(let search): search.isDeclared
    case .stored, .unusable: true
    }
  }

  /// The number of bytes to charge that are stored until the result is complete; those of a search are charged already.
  var byteCount: Int {
    switch self {
    case .stored(let map): map.byteCount
    case .listed, .unusable: 0
    }
  }
}

/// A gain map of an HEIC or AVIF file, and how the result describes it.
struct DescribedGainMap: Sendable, Hashable {
  /// An HEIC or AVIF file that contains the map alone; empty until a rendition keeps it.
  var file: [UInt8] = []
  private let fileByteCount: Int
  /// The metadata of ISO 21496-1, from the versions on.
  let metadata: [UInt8]
  /// The same as properties of Adobe and Ultra HDR; empty without them.
  let properties: String
  /// The level of the result for each level of the map; `nil` if they stay.
  let levels: [UInt8]?
  /// An upper bound of the bytes that decoding its file charges.
  let decodingByteCount: UInt64

  /// The bytes that libheif charges for each pixel and for each file, which is buffered and copied.
  private static let (bytesPerPixel, bytesPerByte, libraryByteCount) = (UInt64(8), UInt64(4), UInt64(5 << 20))
  /// The sizes of metadata of one channel and of three: versions, flags, two headrooms, and five fractions for each.
  private static let metadataByteCounts = [5 + 16 + 40, 5 + 16 + 3 * 40]

  /// - Parameters:
  ///   - map: The map as stored.
  ///   - exif: The EXIF block of its image.
  /// - Throws: The reason why the map cannot be used.
  init(_ map: StoredGainMap, exif: [UInt8]) throws(GainMapObstacle) {
    guard map.fileByteCount > 0 else { throw .damage }
    fileByteCount = map.fileByteCount
    decodingByteCount =
      Self.libraryByteCount + UInt64(map.width) * UInt64(map.height) * Self.bytesPerPixel
      + UInt64(map.fileByteCount) * Self.bytesPerByte
    switch map.kind {
    case .iso:
      guard Self.metadataByteCounts.contains(map.description.count) else { throw .damage }
      (metadata, properties, levels) = (map.description, "", nil)
    case .apple:
      guard let apple = AppleGainMap(xmp: map.description, exif: exif) else { throw .headroom }
      (metadata, properties, levels) = (apple.metadata, apple.properties, apple.levels)
    }
  }

  /// The number of bytes that are stored, with the description in the result.
  var byteCount: Int { fileByteCount + 2 * (metadata.count + properties.utf8.count) + 1024 }
}

extension ImageReader {
  /// Returns the gain map of the image as far as it is known behind the header; `nil` without one.
  mutating func gainMapSource() throws(PipelineError) -> GainMapSource? {
    if let search = gainMaps {
      return search.mayHaveMap(behind: position) ? .listed(search) : nil
    }
    guard keepsStoredGainMap else { return nil }
    let (map, exif) = try withDecoder { decoder in (decoder.gainMap, decoder.metadata.exif) }
    guard let map else { return nil }
    do throws(GainMapObstacle) { return .stored(try DescribedGainMap(map, exif: exif)) } catch {
      return .unusable(error)
    }
  }
}
