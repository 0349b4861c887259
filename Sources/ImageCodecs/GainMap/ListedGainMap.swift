/// The gain map of a JPEG whose bytes can be read in any order, as its own header describes it.
package struct ListedGainMap: Sendable {
  /// The width in pixels, as stored.
  package let width: Int
  /// The height in pixels, as stored.
  package let height: Int
  /// The description of the map in its header.
  package let metadata: GainMapMetadata
  /// The EXIF block of its image; empty without one.
  package let exif: [UInt8]

  private static let windowByteCount = 16 * 1024
  /// The maximum size of a header.
  private static let maxHeaderByteCount = 4 << 20

  /// Finds the map of a file in memory, or of its beginning; see `find(_:)`.
  package static func find(in file: RawSpan) -> ListedGainMap? {
    file.withUnsafeBytes { bytes in find { [UInt8](bytes.dropFirst($0).prefix($1)) } }
  }

  /// Finds the map of a file.
  /// - Parameter read: Returns bytes of the file at an offset; fewer at its end.
  /// - Returns: `nil` if the file is no JPEG, has no map, or ends before the map's header does.
  package static func find(_ read: (_ offset: Int, _ byteCount: Int) -> [UInt8]) -> ListedGainMap? {
    guard read(0, 3) == [0xFF, 0xD8, 0xFF] else { return nil }
    var search = GainMapSearch()
    windows(read, from: 0) { window in
      search.push(window)
      return search.isHeaderDone
    }
    if let map = find(search, read) { return map }
    guard search.isFollowing else { return nil }
    windows(read, from: Int(search.position), maxByteCount: .max) { window in
      search.push(window)
      return !search.isFollowing
    }
    return find(search, read)
  }

  /// Returns the first map at the places of a search.
  private static func find(
    _ search: GainMapSearch, _ read: (_ offset: Int, _ byteCount: Int) -> [UInt8]
  ) -> ListedGainMap? {
    for place in search.places {
      guard let start = Int(exactly: place.offset) else { continue }
      var metadata = GainMapMetadata()
      windows(read, from: start) { window in
        metadata.push(window)
        return metadata.isDone
      }
      guard metadata.isGainMap, let size = metadata.frameSize else { continue }
      return ListedGainMap(width: size.width, height: size.height, metadata: metadata, exif: search.exif)
    }
    return nil
  }

  /// Calls `body` with one window after the other until it returns true.
  private static func windows(
    _ read: (_ offset: Int, _ byteCount: Int) -> [UInt8], from start: Int, maxByteCount: Int = maxHeaderByteCount,
    _ body: (RawSpan) -> Bool
  ) {
    var count = 0
    while count < maxByteCount {
      let bytes = read(start + count, windowByteCount)
      if bytes.isEmpty || body(bytes.span.bytes) { return }
      count += bytes.count
    }
  }
}
