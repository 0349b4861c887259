internal import CCodecs

/// The gain map of an HEIC or AVIF file, which is an image among its items.
package struct StoredGainMap: Sendable, Hashable {
  /// The way in which a map is described.
  package enum Kind: Sendable, Hashable {
    /// As ISO 21496-1 specifies.
    case iso
    /// As Apple does: in XMP of the map, and in the camera's note of its image.
    case apple
  }

  /// The way in which the map is described.
  package var kind: Kind
  /// The width in pixels, as stored.
  package var width: Int
  /// The height in pixels, as stored.
  package var height: Int
  /// The size in bytes of `Decoder.gainMapFile`; 0 if the map is damaged, or larger than the memory of the image.
  package var fileByteCount: Int
  /// The metadata of ISO 21496-1, from the versions on, or an XMP packet.
  package var description: [UInt8]
}

extension ImageFormat {
  /// The formats whose files have gain maps among their items.
  package static let storingGainMaps: [ImageFormat] = [.heic, .avif]
}

extension Decoder {
  /// The gain map of an HEIC or AVIF file, if the limits ask for it; `nil` without one.
  ///
  /// Call it after the header is complete and before `start`, which frees the map.
  package var gainMap: StoredGainMap? {
    let map = unsafeGainMap
    let kind: StoredGainMap.Kind
    switch map.kind {
    case CCODECS_GAIN_MAP_ISO: kind = .iso
    case CCODECS_GAIN_MAP_APPLE: kind = .apple
    default: return nil
    }
    return StoredGainMap(
      kind: kind, width: Int(map.width), height: Int(map.height), fileByteCount: map.file_count,
      description: Array(UnsafeBufferPointer(start: map.description, count: map.description_count)))
  }

  /// An HEIC or AVIF file that contains the gain map alone, in the orientation of its image; empty without one.
  ///
  /// Call it as `gainMap`, whose `fileByteCount` is its size.
  package var gainMapFile: [UInt8] {
    let map = unsafeGainMap
    return Array(UnsafeBufferPointer(start: map.file, count: map.file_count))
  }

  private var unsafeGainMap: ccodecs_gain_map {
    var map = ccodecs_gain_map()
    withHandle { ccodecs_decoder_gain_map($0, &map) }
    return map
  }
}
